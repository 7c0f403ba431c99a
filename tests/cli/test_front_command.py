"""`sparkserve front run` as systemd starts it: a process, its files, its exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

TESTS = Path(__file__).parents[1]
PLAN = TESTS / "golden" / "local-single" / "spark-0.json"


def front(*arguments: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "sparkserve.cli.main", "front", "run", *arguments]
    env = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_it_refuses_until_somebody_says_up_and_stops_on_sigterm(tmp_path: Path) -> None:
    port = free_port()
    process = front(
        "--plan",
        str(PLAN),
        "--listen",
        f"127.0.0.1:{port}",
        "--engine",
        "127.0.0.1:1",
        "--run-dir",
        str(tmp_path),
    )
    try:
        for _ in range(100):
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/v1/models", trust_env=False)
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        assert answer.status_code == 503
        assert "group.json" in answer.json()["error"]["message"]
        assert json.loads((tmp_path / "front.json").read_text())["verdict"] == "down"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 0
    line = json.loads(out.splitlines()[0])
    assert (line["path"], line["status"], line["end"]) == ("/v1/models", 503, "refused")
    assert list(tmp_path.iterdir()) == []


def test_exit_codes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for code, arguments in (
            (2, ["--plan", str(PLAN), "--listen", "nonsense"]),
            (13, ["--plan", str(PLAN), "--listen", address, "--engine", "127.0.0.1:1"]),
            (35, ["--plan", str(tmp_path / "none.json")]),
            (35, ["--plan", str(PLAN)]),
        ):
            process = front(*arguments, "--run-dir", str(tmp_path))
            _, err = process.communicate(timeout=20)
            assert process.returncode == code, err
            assert "Traceback" not in err
