"""What activation remembers of a node: what was there before anything of ours, and what is ours.

`record.json` is written whole or not at all, and before anything that it tells of is done. So whatever ended
an activation, the next one knows for every file whether it is ours, was there before, or was edited by hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve.host.system import wrong
from sparkserve.host.there import There, put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.host.system import System


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Part):
    """A path that we changed: what `was` there before, and what of `ours` may be there now.

    `ours` has two entries while one takes the other's place.
    """

    was: There | None
    ours: tuple[There, ...]

    def known(self, now: There | None) -> bool:
        """Whether what is there `now` can be replaced without losing anybody's work."""
        return now is None or any(now.same(each) for each in (self.was, *self.ours))


class Pending(_Part):
    """A change that has begun: to `closure`, or away from everything of ours. `changed` are its paths."""

    closure: str | None
    changed: tuple[str, ...]


class Record(_Part):
    """`closure` is in effect on the node `node`. `folders` are those that we made.

    `sysctls` are values from before ours, `stopped` are units that ran until we masked them.
    """

    schema_name: Literal["sparkserve.activation/1"] = "sparkserve.activation/1"
    node: str | None = None
    closure: str | None = None
    entries: dict[str, Entry] = {}
    folders: tuple[str, ...] = ()
    sysctls: dict[str, str] = {}
    stopped: tuple[str, ...] = ()
    pending: Pending | None = None


def load(system: System) -> Record:
    """The node's record; an empty one when nothing of ours is there. Raises `NODE.ACTIVATE`."""
    file = system.state() / "record.json"
    try:
        return Record.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return Record()
    except ValidationError as error:
        found = " ".join(str(error).split())[:200]
        do = "Its disk is failing, or somebody edited it: the files from before are in backup beside it."
        raise wrong("the record of what activation changed", found, str(file), do) from None


def save(system: System, record: Record) -> None:
    """Replace the node's record."""
    system.state().mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps(record.model_dump(mode="json"), indent=1, sort_keys=True)
    _put(system.state() / "record.json", text.encode())


def backup(system: System, value: str) -> Path:
    """Where the bytes of a file with the sha256 `value` are kept."""
    return system.state() / "backup" / value


def back_up(system: System, path: Path, was: There) -> None:
    """Keep the bytes of the file `path`. Links are in the record itself."""
    if was.kind == "file" and not backup(system, was.value).exists():
        _put(backup(system, was.value), path.read_bytes())


def keep_aside(system: System, path: str, now: There) -> Path:
    """Copy what was edited by hand to where nothing of ours touches it again; where that is."""
    source = system.at(path)
    suffix = now.value[:8] if now.kind == "file" else "link"
    kept = system.state() / "kept" / f"{path.lstrip('/')}.{suffix}"
    put(kept, now, source.read_bytes() if now.kind == "file" else b"")
    return kept


def clean(system: System, record: Record) -> None:
    """Remove backups that nothing needs, and all of the record when nothing of ours is left."""
    needed = {entry.was.value for entry in record.entries.values() if entry.was}
    for file in system.state().glob("backup/*"):
        if file.name not in needed:
            file.unlink()
    if record.closure is None and record.pending is None:
        shutil.rmtree(system.state() / "backup", ignore_errors=True)
        (system.state() / "record.json").unlink(missing_ok=True)
        if not any(system.state().iterdir()):
            system.state().rmdir()


@contextmanager
def locked(system: System) -> Iterator[None]:
    """Only one activation at a time. Raises `NODE.ACTIVATE` when another one runs."""
    folder = system.state().parent
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise wrong("one activation at a time", "another one", system.name, "Wait for its end.") from None
        yield
    finally:
        os.close(fd)


def _put(path: Path, data: bytes) -> None:
    put(path, There(kind="file", value="", mode=0o600, uid=os.geteuid(), gid=os.getegid()), data)
