"""Reads a file that somebody named: it may be a FIFO, a device without end, or nested without end."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MOST = 32 << 20  # bytes; a plan has some 20 KiB, a bundle of the doctor some MiB


def opened(path: Path) -> BinaryIO:
    """A regular file to read. Raises `OSError`, and `ValueError` for what is no such file."""
    # Opening a FIFO waits for a writer, and a tape would act: neither with O_NONBLOCK.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        if stat.S_ISDIR(mode):  # fdopen would name the number
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise ValueError("no regular file")
    return os.fdopen(fd, "rb")


def fault(error: Exception) -> str:
    """What is wrong with a file, in a line: what pydantic says first, without its page in the web."""
    from pydantic import ValidationError  # here: the doctor has nothing but Python

    if isinstance(error, OSError):
        return error.strerror or str(error)
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'its start'}"


def limited(file: BinaryIO) -> bytes:
    """All of a file. Raises `ValueError` when that is more than anybody has written."""
    found = file.read(MOST + 1)
    if len(found) > MOST:
        raise ValueError(f"more than {MOST >> 20} MiB")
    return found


def read_json(path: Path) -> Any:
    """The JSON value in a regular file. Raises `OSError`, and `ValueError` for what is no such file."""
    with opened(path) as file:
        found = limited(file)
    try:
        return json.loads(found.decode(), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word}, which is no number of JSON")
