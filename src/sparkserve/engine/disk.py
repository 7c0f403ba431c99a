"""A full disk below the state folder, told apart from other failures."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Room for a log, records and links. With less, an engine dies while it writes its log.
NEEDED_MIB = 16


def check(folder: Path) -> None:
    """Raise `HOST.DISK` unless there is room for logs and records."""
    free = os.statvfs(folder)
    mib = free.f_bavail * free.f_frsize >> 20
    if mib < NEEDED_MIB:
        raise _full(folder, f"{mib} MiB")


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Turn a write that found no space into `HOST.DISK`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _full(folder, error.strerror or "no space") from None


def _full(folder: Path, found: str) -> SparkserveError:
    return SparkserveError(
        "HOST.DISK",
        expected=f"{NEEDED_MIB} MiB of free space for logs and records",
        found=found,
        where=str(folder),
        do="Free some space and run the same command.",
    )
