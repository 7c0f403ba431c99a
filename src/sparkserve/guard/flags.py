"""What supervisor and guard tell each other by locks on bytes of a file (pkgs/guard/src/flags.c).

A lock ends with its process, however that ends: no flag says more than is true.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "guard.flags"
ENGINE, STEADY, GUARD = range(3)
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


class Flags:
    """The file `path`, made if missing. Only one of these a process: closing any lets go of all its locks."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def take(self, flag: int) -> None:
        """Set a flag. Raises OSError when another process has it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, flag)

    def drop(self, flag: int) -> None:
        """Take it back; nothing happens when it is not set."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, flag)

    def seen(self, flag: int) -> bool:
        """Whether another process has set it."""
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, flag, 1, 0)
        answer: int = struct.unpack(_FLOCK, fcntl.fcntl(self._file, fcntl.F_GETLK, asked))[0]
        return answer != fcntl.F_UNLCK

    def close(self) -> None:
        """Let go of everything."""
        os.close(self._file)
