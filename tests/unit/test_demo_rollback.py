"""The demo around its deployments: how requests end, and what counts as caught and as before."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from local_values import PLANS

from sparkserve.demo import clients, rollback
from sparkserve.deploy import deployer
from sparkserve.engine import chat
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNKED = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(text: str) -> str:
    return f"{len(text):x}\r\n{text}\r\n"


TOKEN, DONE, ERROR = (
    chunk('data: {"choices": []}\n\n'),
    chunk("data: [DONE]\n\n"),
    chunk('\n\ndata: {"error":{"code":"engine_lost"}}\n\n'),
)
ANSWERS = [
    (CHUNKED + TOKEN + DONE + "0\r\n\r\n", "answered"),
    ("HTTP/1.1 503 No\r\nretry-after: 10\r\ncontent-length: 2\r\n\r\n{}", "refused"),
    ("HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n{}", "lost"),
    ("HTTP/1.1 502 No\r\ncontent-length: 2\r\n\r\n{}", "broken"),
    ("HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\n{}", "lost"),
    (CHUNKED + TOKEN + ERROR, "broken"),
    (CHUNKED + TOKEN, "lost"),  # cut, and nothing says why
    (CHUNKED + TOKEN + "0\r\n\r\n", "lost"),  # as if it were whole
    ("", "untaken"),
]


@contextmanager
def server(answer: str) -> Iterator[str]:
    """Somebody who reads a request, says `answer`, and goes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def work() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer.encode())

        thread = threading.Thread(target=work)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions"
        thread.join()


@pytest.mark.parametrize(("answer", "end"), ANSWERS)
def test_how_a_request_ends(answer: str, end: str) -> None:
    with server(answer) as url, httpx.Client(trust_env=False) as client:
        found, why = clients.ask(client, url, {})
    assert found == end, why


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with httpx.Client(trust_env=False) as client:
        assert clients.ask(client, url, {})[0] == "untaken"


def test_every_request_has_ended_when_the_count_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, asked = threading.Semaphore(0), []

    def ask(*_: object) -> tuple[clients.End, str]:
        begun.release()
        asked.append(1)
        return ("lost", "silent") if len(asked) == 3 else ("answered", "")

    monkeypatch.setattr(clients, "ask", ask)
    with clients.asking("http://nobody", "model") as tally:
        for _ in range(10):
            begun.acquire()
    assert sum(tally.ends.values()) == len(asked) >= 10
    assert (tally.ends["lost"], tally.lost) == (1, ["silent"])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A fleet whose deployments end with `world.error`, and that has `world.path` and says `world.text`."""
    made = SimpleNamespace(error=None, path="/nix/store/one", text="Paris", back=[], tally=clients.Tally())

    def deploy(fleet: str, **_: object) -> None:
        if made.error:
            raise made.error

    def answer(*_: object, **__: object) -> Any:
        return SimpleNamespace(text=made.text)

    def found(fleet: str) -> dict[str, Any]:
        return {
            "spark-0": SimpleNamespace(base=SimpleNamespace(path=made.path), state=SimpleNamespace(open=None))
        }

    @contextmanager
    def asking(*_: object) -> Iterator[clients.Tally]:
        yield made.tally

    monkeypatch.setattr(deployer, "deploy", deploy)
    monkeypatch.setattr(deployer, "generations", found)
    monkeypatch.setattr(deployer, "roll_back", lambda fleet, to, **_: made.back.append(to))
    monkeypatch.setattr(chat, "complete", answer)
    monkeypatch.setattr(httpx, "post", lambda *_, **__: SimpleNamespace(raise_for_status=lambda: None))
    monkeypatch.setattr(rollback, "planted", lambda *_: nullcontext())
    monkeypatch.setattr(clients, "asking", asking)
    return made


def undone(cause: BaseException) -> SparkserveError:
    error = SparkserveError("DEPLOY.UNDONE", expected="it to be kept", found=str(cause), where="", do="")
    error.__cause__ = cause
    return error


def stage() -> rollback.Stage:
    return rollback.Stage(PLANS[0])


def test_a_fault_that_a_gate_catches(world: SimpleNamespace) -> None:
    gate = SparkserveError("GATE.FAILED", expected="a pass", found="smoke: Sirap\nmore", where="", do="")
    world.error = undone(gate)
    world.tally.add("refused", "")
    shown = stage().show("garbled")
    assert (shown.caught, shown.reason, shown.wrong) == ("GATE.FAILED", "smoke: Sirap", ())
    assert shown.requests == {"answered": 0, "refused": 1, "broken": 0, "untaken": 0, "lost": 0}


def test_a_fault_that_nothing_catches_is_taken_back_and_told(world: SimpleNamespace) -> None:
    shown = stage().show("slow")
    assert (shown.caught, shown.wrong) == ("", ("generation 2 was kept",))
    assert world.back == ["/nix/store/one"]


def test_what_is_not_as_before_is_told(world: SimpleNamespace) -> None:
    made = stage()
    world.error = undone(SparkserveError("GROUP.BOOT", expected="", found="rank 1", where="", do=""))
    world.path = "/nix/store/two"
    world.tally.add("lost", "silent for 120 s")
    wrong = made.show("dead").wrong
    assert len(wrong) == 2
    assert "/nix/store/two" in wrong[0] and wrong[1] == "a request was lost: silent for 120 s"


def test_another_answer_than_before_is_told(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    world.error = undone(SparkserveError("GROUP.BOOT", expected="", found="rank 1", where="", do=""))
    texts = iter(["a", "b", "c", "a", "B", "c"])
    monkeypatch.setattr(chat, "complete", lambda *_, **__: SimpleNamespace(text=next(texts)))
    assert "['a', 'B', 'c'], and answered ['a', 'b', 'c']" in stage().show("nan").wrong[0]


def test_ctrl_c_and_an_open_deployment_end_the_demo(world: SimpleNamespace) -> None:
    world.error = undone(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        stage().show("hog")
    world.error = SparkserveError("DEPLOY.OPEN", expected="", found="", where="", do="")
    with pytest.raises(SparkserveError, match=r"DEPLOY\.OPEN"):
        stage().show("hog")
