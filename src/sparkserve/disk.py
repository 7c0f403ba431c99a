"""Disks: a full one, told apart from other failures whoever meets it, and names brought onto one."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Room for a log, records and links. With less, an engine dies while it writes its log.
NEEDED_MIB = 16
# What Nix (the second: its SQLite), apt and pip print.
_TEXTS = ("No space left on device", "disk is full", "Disk quota exceeded")


def full(
    where: str, *, expected: str = "free space to write", found: str = "no space left"
) -> SparkserveError:
    """The error for a full disk."""
    do = "Free some space (./sparkserve nix store gc removes what nothing uses) and run the same command."
    return SparkserveError("HOST.DISK", expected=expected, found=found, where=where, do=do)


def met(error: OSError) -> bool:
    """Whether `error` is a full disk or a used-up quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def told(text: str) -> bool:
    """Whether a program's output tells of a full disk."""
    return any(each in text for each in _TEXTS)


def check(folder: Path) -> None:
    """Raise `HOST.DISK` unless there is room for logs and records."""
    free = os.statvfs(folder)
    mib = free.f_bavail * free.f_frsize >> 20
    if mib < NEEDED_MIB:
        raise full(str(folder), expected=f"{NEEDED_MIB} MiB for logs and records", found=f"{mib} MiB")


def need(folder: Path, size: int) -> None:
    """Raise `HOST.DISK` unless `size` bytes are free at `folder`."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise full(str(folder), found=f"{free >> 20} MiB free of {size >> 20} MiB needed")


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Raise `HOST.DISK` for a write below `folder` that finds no space; such an error names no file."""
    try:
        yield
    except OSError as error:
        if not met(error):
            raise
        raise full(str(error.filename or folder)) from None


def sync(folder: Path) -> None:
    """Bring the names in `folder` onto the disk."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
