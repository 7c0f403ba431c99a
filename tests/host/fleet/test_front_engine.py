"""The front before real SGLang, with real clients; then the engine hangs, and dies.

Costs one start, 2 minutes once the closure is built. Needs Nix and root.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import openai
import pytest

from sparkserve.engine import procfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine_copy import Copy

FLEET = ("--fleet", "local-single")
LOST_S = 10
ASK: dict[str, Any] = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
    "max_tokens": 32,
}


class Served(NamedTuple):
    """The engine at `engine` with the launcher `pid`, the front at `front` with its files in `run`."""

    engine: str
    pid: int
    front: str
    run: Path

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.front}/v1", api_key="none", max_retries=0)

    def health(self) -> tuple[int, dict[str, Any]]:
        answer = httpx.get(f"{self.front}/health", trust_env=False)
        return answer.status_code, answer.json()

    def wait_for_health(self, code: int, seconds: float) -> float:
        """Seconds until /health says `code`."""
        begin = time.monotonic()
        while self.health()[0] != code:
            assert time.monotonic() - begin < seconds, self.health()
            time.sleep(0.05)
        return time.monotonic() - begin


@pytest.fixture(scope="module")
def served(copy: Copy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    up = copy.json("up", *FLEET)
    run = tmp_path_factory.mktemp("run")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    plan = copy.path / ".sparkserve/roots/host-local-single-spark-0/plan.json"
    addresses = ["--listen", f"127.0.0.1:{port}", "--engine", f"127.0.0.1:{copy.port}", "--run-dir", str(run)]
    argv = [sys.executable, "-m", "sparkserve.cli.main", "front", "run", "--plan", str(plan), *addresses]
    (run / "group.json").write_text('{"state":"up","boot":"b1"}')
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": f"{copy.path}/src"}) as front:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Served(up["endpoint"], up["pid"], f"http://127.0.0.1:{port}", run)
        front.terminate()
    copy.run("down", *FLEET)


def scheduler(pid: int) -> int:
    """The process that computes, and not the one that speaks HTTP."""
    names = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in procfs.tree(pid)}
    return next(child for child, name in names.items() if b"scheduler" in name)


def test_a_canary_and_real_clients(served: Served) -> None:
    served.wait_for_health(200, 20)
    client = served.client()
    whole = client.chat.completions.create(**ASK)
    assert whole.choices[0].message.content == "The capital of France is Paris."
    parts = client.chat.completions.create(**ASK, stream=True)
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == "The capital of France is Paris."
    assert [model.id for model in client.models.list()] == [ASK["model"]]
    with pytest.raises(openai.BadRequestError):  # the engine's own errors come through
        client.chat.completions.create(**{**ASK, "max_tokens": -1})


def test_streams_at_once_say_what_they_say_alone(served: Served) -> None:
    def ask(number: int) -> str:
        content = f"Count from {number} to {number + 5}."
        request = {**ASK, "messages": [{"role": "user", "content": content}]}
        parts = served.client().chat.completions.create(**request, stream=True)
        return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)

    alone = [ask(number) for number in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ask, [0, 1, 2, 3] * 2))
    assert together == alone * 2


def test_a_client_that_goes_frees_its_place(served: Served) -> None:
    def running() -> int:
        loads = httpx.get(f"{served.engine}/v1/loads", trust_env=False).json()["loads"]
        return sum(int(load["num_running_reqs"]) for load in loads)

    request = {**ASK, "max_tokens": 2000, "extra_body": {"ignore_eos": True}}
    for stream in (True, False):
        with ThreadPoolExecutor(1) as pool:
            client = served.client().with_options(timeout=3)
            asked = pool.submit(lambda: list(client.chat.completions.create(**request, stream=stream)))  # noqa: B023
            time.sleep(1.5)
            assert running() == 1
            if stream:  # its read never times out, since tokens come: cut it
                client.close()
            with pytest.raises(Exception, match=r".*"):
                asked.result()
        end = time.monotonic() + 5
        while running():
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_hang_turns_health_in_time_and_back(served: Served) -> None:
    served.wait_for_health(200, 20)
    stopped = scheduler(served.pid)
    os.kill(stopped, signal.SIGSTOP)
    try:
        # The engine's HTTP server goes on, as it does when a collective hangs.
        assert httpx.get(f"{served.engine}/v1/models", trust_env=False).status_code == 200
        seconds = served.wait_for_health(503, LOST_S + 2)
        assert seconds <= LOST_S + 0.5, seconds
        time.sleep(0.5)
        told = json.loads((served.run / "front.json").read_text())
        assert told["verdict"] == "silent"
        with pytest.raises(openai.InternalServerError) as refused:
            served.client().chat.completions.create(**ASK)
        assert (refused.value.code, refused.value.status_code) == ("group_silent", 503)
    finally:
        os.kill(stopped, signal.SIGCONT)
    served.wait_for_health(200, 30)


def test_an_engine_that_dies_ends_no_stream_well(served: Served) -> None:
    served.wait_for_health(200, 20)
    request = {**ASK, "max_tokens": 2000, "extra_body": {"ignore_eos": True}}
    parts = iter(served.client().chat.completions.create(**request, stream=True))
    next(parts)
    os.kill(served.pid, signal.SIGKILL)
    with pytest.raises(openai.APIError, match="broke off"):
        list(parts)
    with pytest.raises(openai.InternalServerError) as refused:
        served.client().chat.completions.create(**ASK)
    assert (refused.value.code, refused.value.status_code) == ("engine_unreachable", 503)
    assert served.wait_for_health(503, LOST_S + 2) <= LOST_S + 0.5
