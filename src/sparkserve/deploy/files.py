"""The calls that change what lasts of a deployment: one place, so that a test can record or end them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sparkserve import disk
from sparkserve.host.there import There, put

if TYPE_CHECKING:
    from pathlib import Path


class Files:
    """The real ones. Each takes whole paths; `folder` and `link` sync, and nothing else does by itself."""

    def folder(self, path: Path) -> None:
        """Make the folder `path` and those above it, on the disk; no harm when it is there."""
        if not path.is_dir():
            self.folder(path.parent)
            path.mkdir(exist_ok=True)
            disk.sync(path.parent)

    def create(self, path: Path) -> None:
        """Make an empty file. Raises `FileExistsError`."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))

    def write(self, path: Path, at: int, data: bytes) -> None:
        """Write `data` at the byte `at` of a file."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while data:
                done = os.pwrite(fd, data, at)
                at, data = at + done, data[done:]
        finally:
            os.close(fd)

    def cut(self, path: Path, size: int) -> None:
        """Drop what a file has after `size` bytes."""
        os.truncate(path, size)

    def remove(self, path: Path) -> None:
        """Remove a file or a link; no harm when there is none."""
        path.unlink(missing_ok=True)

    def link(self, path: Path, target: str) -> None:
        """Make `path` a link to `target` in one step, on the disk."""
        put(path, There(kind="link", value=target))

    def sync(self, path: Path) -> None:
        """Bring a file's bytes, or a folder's names, onto the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
