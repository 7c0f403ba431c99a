"""What lies at a path of the node: looked at, written and removed in steps that survive a power cut."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from sparkserve import disk
from sparkserve.host.system import wrong

if TYPE_CHECKING:
    from pathlib import Path


class There(BaseModel):
    """A file or a link. `value` is the sha256 of a file's bytes, or a link's target."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["file", "link"]
    value: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0

    def same(self, other: There | None) -> bool:
        """Whether nobody could tell them apart, but for the time of change."""
        if other is None or (self.kind, self.value) != (other.kind, other.value):
            return False
        # A link has no permissions, and its owner counts for nothing.
        return self.kind == "link" or (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid)


def look(path: Path) -> There | None:
    """What is at `path`; None for nothing. Raises `NODE.ACTIVATE` for a folder or a device."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return There(kind="link", value=os.readlink(path))  # noqa: PTH115 - a Path changes it
    if not stat.S_ISREG(found.st_mode):
        raise wrong(f"a file at {path}", "a folder or a device", "the node", "Move it out of the way.")
    return There(
        kind="file",
        value=hashlib.sha256(path.read_bytes()).hexdigest(),
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        mtime_ns=found.st_mtime_ns,
    )


def part(path: Path) -> Path:
    """Where the next content of `path` is written. Nothing reads a name that begins with a dot."""
    return path.with_name(f".{path.name}.sparkserve")


def put(path: Path, what: There | None, data: bytes = b"") -> None:
    """Bring `what` to `path`, with the bytes `data` for a file; a power cut leaves it whole or as before."""
    if what is None:
        path.unlink(missing_ok=True)
        disk.sync(path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = part(path)
    new.unlink(missing_ok=True)
    if what.kind == "link":
        new.symlink_to(what.value)
    else:
        _write(new, what, data)
    new.replace(path)
    disk.sync(path.parent)


def _write(path: Path, what: There, data: bytes) -> None:
    # Not readable by others before it has its owner and mode.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        if (what.uid, what.gid) != (os.geteuid(), os.getegid()):
            os.fchown(file.fileno(), what.uid, what.gid)
        os.fchmod(file.fileno(), what.mode)
        if what.mtime_ns:
            os.utime(file.fileno(), ns=(what.mtime_ns, what.mtime_ns))
        os.fsync(file.fileno())
