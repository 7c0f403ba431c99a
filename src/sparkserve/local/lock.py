"""One command at a time changes a fleet."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

    from sparkserve.local.names import Names


@contextmanager
def held(state: Path, fleet: str) -> Iterator[None]:
    """Hold the fleet's lock while the body runs; if another process has it, say so and wait.

    The kernel frees it when its holder dies, however it dies.
    """
    with _opened(state / "run" / f"{fleet}.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().decode().strip() or "unknown"
            console.print(f"Another sparkserve (pid {holder}) is changing {fleet}; waiting until it is done.")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        with suppress(OSError):  # `down` must work on a full disk too
            file.write(str(os.getpid()).encode())
        yield


@contextmanager
def powered(names: Names) -> Iterator[None]:
    """Hold the lock on the power of the fleet's nodes while the body runs: for seconds, so without a word."""
    with _opened(names.folder / "power.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _opened(path: Path) -> FileIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab+", buffering=0)  # not truncated: the holder's pid stands in it
