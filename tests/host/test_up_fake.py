"""The commands up, down, status, logs and smoke as a user runs them, with a small server for the engine.

Costs a minute. Needs `bwrap` on PATH and user namespaces. tests/host/test_up_down.py does it with SGLang.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import fake_checkout
import pytest

from sparkserve import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fake_checkout import Checkout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    checkout = fake_checkout.make(tmp_path)
    checkout.configure(port=free_port())
    yield checkout
    checkout.run("down")
    assert engines(tmp_path) == []


def engines(path: Path) -> list[str]:
    """Processes that mention the checkout or run its engine: none may be left."""
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = cmdline.read_text()
            if str(path) in words or fake_checkout.SCRIPT in words:
                found.append(f"{cmdline.parent.name} {words}")
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def test_the_whole_way(checkout: Checkout) -> None:
    assert checkout.run("status")[0] == 52
    assert checkout.run("smoke")[0] == 52
    code, out, err = checkout.run("up", "--json")
    assert code == 0, err
    up = json.loads(out)
    assert not up["already_running"]
    assert json.loads(checkout.run("smoke", "--json")[1])["answer"].endswith("Paris.")
    code, out, _ = checkout.run("status", "--json")
    node = json.loads(out)["nodes"][0]
    assert (code, node["state"], node["pid"]) == (0, "ready", up["pid"])
    assert "Uvicorn" in checkout.run("logs", "-n", "1")[1]
    assert json.loads(checkout.run("up", "--json")[1])["pid"] == up["pid"]
    assert checkout.run("down")[0] == 0
    code, _, err = checkout.run("down")
    assert code == 0 and "does not run" in err


def test_up_twice_at_once(checkout: Checkout) -> None:
    both = [checkout.start("up", "--json") for _ in range(2)]
    results = [json.loads(child.communicate(timeout=60)[0]) for child in both]
    assert [child.returncode for child in both] == [0, 0]
    assert sorted(result["already_running"] for result in results) == [False, True]
    assert results[0]["pid"] == results[1]["pid"]


def test_another_fleet_id_replaces_the_engine(checkout: Checkout) -> None:
    first = json.loads(checkout.run("up", "--json")[1])
    checkout.configure(port=free_port(), fleet_id="1" * 64)
    code, out, err = checkout.run("up", "--json")
    assert code == 0, err
    assert "Stop the running engine of fleet id 000000000000" in err
    assert json.loads(out)["pid"] != first["pid"]
    assert len(engines(checkout.path)) == 4  # bubblewrap, its PID 1, launcher, scheduler


def test_taken_port_is_found_before_the_build(checkout: Checkout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        checkout.configure(port=server.getsockname()[1])
        code, out, _ = checkout.run("up", "--json")
    assert code == 13
    assert f"process {os.getpid()}" in json.loads(out)["found"]
    assert not (checkout.path / "builds").exists()


@pytest.mark.parametrize(
    ("phase", "number"),
    [
        *((phase, number) for phase in ("eval", "build") for number in (signal.SIGINT, signal.SIGTERM)),
        *(("ready", number) for number in interrupts.STOPS),
    ],
)
def test_interrupted_in_any_phase(checkout: Checkout, phase: str, number: signal.Signals) -> None:
    checkout.configure(port=free_port(), fault="unhealthy")
    child = checkout.start("up", NIX_SLEEP=phase)
    if phase == "ready":
        wait_for(checkout.record.exists)
    elif phase == "build":
        wait_for((checkout.path / "builds").exists)
    else:
        wait_for((checkout.path / "evals").exists)
    if number == signal.SIGINT:
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    child.communicate(timeout=20)
    assert child.returncode == 128 + number
    assert not checkout.record.exists()
    wait_for(lambda: engines(checkout.path) == [])


def test_killed_up_leaves_an_engine_that_the_next_up_takes_over(checkout: Checkout) -> None:
    checkout.configure(port=free_port(), fault="unhealthy")
    child = checkout.start("up")
    wait_for(checkout.record.exists)
    child.kill()
    child.communicate()
    assert json.loads(checkout.run("status", "--json")[1])["nodes"][0]["state"] == "abandoned"
    code, out, _ = checkout.run("smoke", "--json")
    assert code == 52 and "./sparkserve up" in json.loads(out)["do"]
    checkout.configure(port=free_port(), fault="unhealthy", ready_timeout_s=1)
    code, out, _ = checkout.run("up", "--json")
    assert code == 51 and "503" in json.loads(out)["found"]
    assert checkout.run("down")[0] == 0


def test_terminal_that_closes(checkout: Checkout) -> None:
    """SIGHUP comes twice, and every write to the terminal fails."""
    checkout.configure(port=free_port(), fault="unhealthy")
    ours, terminal = os.openpty()
    to_terminal = ["sh", "-c", 'exec "$@" 2>"$0"', os.ttyname(terminal)]
    child = checkout.start("up", under=to_terminal)
    os.close(terminal)
    wait_for(checkout.record.exists)
    os.close(ours)
    child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGHUP)
    child.communicate(timeout=20)
    assert not checkout.record.exists()
    wait_for(lambda: engines(checkout.path) == [])


def test_wedged_engine(checkout: Checkout) -> None:
    pid = json.loads(checkout.run("up", "--json")[1])["pid"]
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    code, out, _ = checkout.run("smoke", "--json")
    assert (code, json.loads(out)["found"]) == (52, "it is silent")
    code, out, err = checkout.run("up", "--json")
    assert code == 0 and "is silent; replacing it" in err
    assert time.monotonic() - begin < 60
    assert json.loads(out)["pid"] != pid


def test_dead_engine(checkout: Checkout) -> None:
    pid = json.loads(checkout.run("up", "--json")[1])["pid"]
    os.kill(pid, signal.SIGKILL)
    code, out, _ = checkout.run("status", "--json")
    assert (code, json.loads(out)["nodes"][0]["state"]) == (52, "dead")
    code, _, err = checkout.run("up")
    assert code == 0 and "is dead; cleaning up" in err


def test_damaged_record(checkout: Checkout) -> None:
    assert checkout.run("up")[0] == 0
    assert checkout.run("down")[0] == 0
    checkout.record.write_text("{")
    assert checkout.run("status")[0] == 52
    assert checkout.run("smoke")[0] == 52
    code, _, err = checkout.run("down")
    assert code == 0 and "damaged" in err
    assert not checkout.record.exists()


@pytest.mark.parametrize("command", ["down", "up"])
@pytest.mark.parametrize("damage", ["{", None])
def test_running_engine_without_a_record_is_stopped(
    checkout: Checkout, damage: str | None, command: str
) -> None:
    assert checkout.run("up")[0] == 0
    before = set(engines(checkout.path))
    if damage is None:
        checkout.record.unlink()
    else:
        checkout.record.write_text(damage)
    checkout.configure(port=free_port())
    code, _, err = checkout.run(command)
    assert code == 0 and "engine stopped" in err and "does not run" not in err
    wait_for(lambda: not before & set(engines(checkout.path)))


def test_engine_that_dies(checkout: Checkout) -> None:
    checkout.configure(port=free_port(), fault="die")
    code, out, _ = checkout.run("up", "--json")
    assert code == 50
    assert "no weights" in json.loads(out)["found"]
    assert not checkout.record.exists()


def test_wrong_answer(checkout: Checkout) -> None:
    checkout.configure(port=free_port(), fault="london")
    assert checkout.run("up")[0] == 0
    assert checkout.run("smoke")[0] == 53


def test_follow_goes_on_after_a_restart_and_ends_with_its_reader(checkout: Checkout) -> None:
    assert checkout.run("up")[0] == 0
    child = checkout.start("logs", "-f", "-n", "1")
    assert child.stdout is not None
    assert "Uvicorn" in child.stdout.readline()
    checkout.run("down")
    checkout.run("up")
    assert "server_args" in child.stdout.readline()
    child.stdout.close()
    # It sees that its reader left (0), or meets a broken pipe with a line in hand (141).
    assert child.wait(5) in (0, 141)


def test_no_namespaces(checkout: Checkout) -> None:
    """The limit is set in a namespace of its own: the machine's stays as it is."""
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    under = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
    code, out, _ = checkout.run("up", "--json", under=under)
    assert code == 11
    assert "user.max_user_namespaces = 0" in json.loads(out)["found"]


def test_full_disk(checkout: Checkout) -> None:
    """The disk is a small one, mounted where only this command sees it."""
    (checkout.path / ".sparkserve").mkdir()
    mount = 'mount -t tmpfs -o size=1m none .sparkserve; exec "$@"'
    code, out, _ = checkout.run(
        "up", "--json", under=["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    )
    assert code == 12
    assert json.loads(out)["where"] == str(checkout.path / ".sparkserve")
    assert not (checkout.path / "builds").exists()


def test_two_fleets_on_one_port(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever asks first would answer for both: only one may say that it serves, the other leaves nothing."""
    other = fake_checkout.make(tmp_path_factory.mktemp("other"))
    number = free_port()
    for each in (checkout, other):
        each.configure(port=number)
    both = [each.start("up", "--json") for each in (checkout, other)]
    said = [json.loads(child.communicate(timeout=60)[0]) for child in both]
    codes = [child.returncode for child in both]
    winner = codes.index(0)
    loser = said[1 - winner]
    assert loser["error"] in ("HOST.PORT", "ENGINE.START")
    if loser["error"] == "HOST.PORT":
        assert f"process {said[winner]['pid']} (" in loser["found"]
    assert [each.record.exists() for each in (checkout, other)] == [code == 0 for code in codes]
    assert len(engines(checkout.path)) == 4
    other.run("down")
