"""Enters an engine's root by bubblewrap, and finds the two processes there that matter."""

from __future__ import annotations

import json
import subprocess
import time
from typing import IO, TYPE_CHECKING, Any

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.engine.procfs import Process

ENTER_S = 10.0  # bubblewrap needs 20 ms


def spawn(argv: list[str], output: IO[bytes], status: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start bubblewrap. The engine writes to `output`, bubblewrap its reports to `status`.

    Raises `ENGINE.START` when its program cannot be run.
    """
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[status.fileno()],
            start_new_session=True,
            cwd="/",
            env={},
        )
    except OSError as error:
        raise SparkserveError(
            "ENGINE.START",
            expected="bubblewrap from the closure",
            found=str(error),
            where=argv[0],
            do="Build the closure again: ./sparkserve up.",
        ) from None


def enter(monitor: subprocess.Popen[bytes], status: Path) -> tuple[Process, Process] | None:
    """PID 1 of the namespace and the engine's launcher below it; None when bubblewrap ended before.

    When that PID 1 goes, the kernel kills all of the namespace.
    """
    begin = time.monotonic()
    while monitor.poll() is None and time.monotonic() - begin < ENTER_S:
        for document in _reports(status):
            init = procfs.find(document.get("child-pid", 0))
            if init is not None and (launcher := procfs.children(init.pid)):
                return init, launcher[0]
        time.sleep(0.005)
    return None


def exit_code(status: Path) -> int | None:
    """The exit code of the engine, as bubblewrap reported it; None while it runs or if unknown."""
    codes = [document["exit-code"] for document in _reports(status) if "exit-code" in document]
    return codes[-1] if codes else None


def how(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "ended for an unknown reason"
    return "was killed (SIGKILL; out of memory?)" if code == 128 + 9 else f"ended with exit code {code}"


def _reports(status: Path) -> list[dict[str, Any]]:
    # A document is one short write; a half-written last line cannot be parsed and is read again later.
    found = []
    for line in status.read_text().splitlines() if status.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found
