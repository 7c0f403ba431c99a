"""Reads a file that somebody named: it may be a FIFO, a device without end, or nested without end."""

from __future__ import annotations

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
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("no regular file")
    return file


def read_json(path: Path) -> Any:
    """The JSON value in a regular file. Raises `OSError`, and `ValueError` for what is no such file."""
    with opened(path) as file:
        found = file.read(MOST + 1)
    if len(found) > MOST:
        raise ValueError(f"more than {MOST >> 20} MiB")
    try:
        return json.loads(found.decode(), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word}, which is no number of JSON")
