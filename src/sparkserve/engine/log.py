"""Reads an engine's log: its meaningful end, and how far a start has come."""

from __future__ import annotations

import os
import re
import select
import sys
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAIL = 12  # lines that an error shows
LINE = 300  # characters of such a line; SGLang writes its arguments as one line of 12,000
POLL_MS = 200

# Lines that SGLang prints on every CPU start and that explain nothing.
_NOISE = re.compile(
    r"Ignore import error|RLIMIT_NOFILE|freeze_gc|Warning:|warnings.warn|server_args=|^\s*$|^\s+[\^~]+\s*$"
)

# What a start passes through, in order. The last one seen is shown while waiting.
_STEPS = (
    ("server_args=", "arguments read, importing"),
    ("Init torch distributed begin", "joining the ranks"),
    ("Load weight begin", "loading weights"),
    ("Load weight end", "weights loaded"),
    ("KV Cache is allocated", "KV cache allocated"),
    ("max_total_num_tokens=", "scheduler ready"),
    ("Uvicorn running on", "listening"),
)


def last_lines(path: Path, count: int) -> list[str]:
    """The last `count` lines of a log, none when it is missing."""
    try:
        with path.open(errors="replace") as file:
            return list(deque((line.rstrip("\n") for line in file), maxlen=count))
    except FileNotFoundError:
        return []


def tail(path: Path) -> str:
    """The last lines that may explain an end, without the noise."""
    lines = [line[:LINE] for line in last_lines(path, 200) if not _NOISE.search(line)][-TAIL:]
    return "\n".join(lines) if lines else "(the log is empty)"


class Progress:
    """How far a start has come, from the lines added to its log since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = ""
        self.step = "importing"

    def look(self) -> str:
        """Read what is new and return the current step."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        text = self._rest + data.decode(errors="replace")
        for needle, step in _STEPS:
            if needle in text:
                self.step = step
        # A needle may be cut by the end of what is written so far.
        self._rest = text.rpartition("\n")[2]
        return self.step


def follow(path: Path, count: int) -> Iterator[str]:
    """The last `count` lines, then lines as they are added, for ever; goes on in the log of the next start.

    Ends when nobody reads stdout any more, which a write would notice only at the next line.
    """
    file = path.open(errors="replace")
    try:
        yield from deque((line.rstrip("\n") for line in file), maxlen=count)
        while True:
            if line := file.readline():
                yield line.rstrip("\n")
            elif unread(POLL_MS):
                return
            elif _inode(path) not in (None, os.fstat(file.fileno()).st_ino):
                file.close()
                file = path.open(errors="replace")
    finally:
        file.close()


def unread(milliseconds: int = 0) -> bool:
    """Wait so long; True, at once, when nobody reads stdout any more."""
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)
    return bool(reader.poll(milliseconds))


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:  # in the middle of a rotation
        return None
