"""Runs pip and apt so that every one of them ends when this process is told to stop."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkserve import checkout, disk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_running: set[subprocess.Popen[str]] = set()
_guard = threading.Lock()
_stopped = threading.Event()
_locks: list[int] = []


@contextmanager
def sharing(lock: int) -> Iterator[None]:
    """Let what runs meanwhile hold the lock of the open file `lock` too.

    After a `kill -9` it is then free once the orphans, which apt's own locks would trip over, are gone.
    """
    _locks.append(lock)
    try:
        yield
    finally:
        _locks.remove(lock)


def run(
    argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run` with captured text. Raises `HOST.DISK` when the command meets a full disk."""
    with _guard:
        if _stopped.is_set():
            raise KeyboardInterrupt
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=_locks,
        )
        _running.add(process)
    try:
        out, err = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        with _guard:
            _running.discard(process)
    if _stopped.is_set():
        # Not a failure of the command: what it has finished by now is good for the next run.
        raise KeyboardInterrupt
    if process.returncode != 0 and disk.told(out + err):
        raise disk.full(str(checkout.state()))
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


def stop() -> None:
    """End all that runs and let nothing new start."""
    _stopped.set()
    with _guard:
        for process in _running:
            process.terminate()
