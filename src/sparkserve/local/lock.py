"""One command at a time changes a fleet."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
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
    with path.open("a+") as file:  # not truncated: the holder's pid stands in it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            console.print(f"Another sparkserve (pid {holder}) is changing {fleet}; waiting until it is done.")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
