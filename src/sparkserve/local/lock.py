"""One command at a time changes a fleet."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sparkserve.output import console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def held(state: Path, fleet: str) -> Iterator[None]:
    """Hold the fleet's lock while the body runs; if another process has it, say so and wait.

    The kernel frees it when its holder dies, however it dies.
    """
    path = state / "run" / f"{fleet}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:  # not truncated: the holder's pid stands in it
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
