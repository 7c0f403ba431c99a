"""The journal of one deployment: a file of lines `crc32 json`, each on the disk before what it tells of.

It only grows. A power cut may tear the last line, which then was never reported as written: it counts as not
there, and the next append cuts it off. Anything else that is broken was broken by something else, and is
never passed over.
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve import disk
from sparkserve.deploy.files import Files
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"([0-9]{6,})-([0-9a-z][0-9a-z-]*)")


class Record(BaseModel):
    """One line: what happened, and what belongs to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    data: dict[str, Any]


class Journal:
    """The journal in the file `path`, which its first `append` makes."""

    def __init__(self, path: Path, files: Files, records: tuple[Record, ...] = (), size: int = 0) -> None:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise ValueError(path.name)
        self.path = path
        self.number, self.id = int(name[1]), name[2]
        self.records = records
        self._files = files
        self._size = size  # of the lines; what follows is torn

    @staticmethod
    def create(folder: Path, id: str, files: Files | None = None) -> Journal:
        """A new journal of the deployment `id`, the last one in `folder`. One process at a time may.

        Nothing is there before the first `append`.
        """
        taken = [int(name[1]) for path in _there(folder) if (name := _NAME.fullmatch(path.name))]
        return Journal(folder / f"{max(taken, default=0) + 1:06}-{id}", files or Files())

    def append(self, kind: str, **data: Any) -> None:
        """Add a record, and return when it is on the disk.

        Raises `HOST.DISK` for a full disk, and `OSError`; the journal is then as before. Raises
        `DEPLOY.FENCED` when another process has added to it since it was read.
        """
        record = Record(kind=kind, data=data)
        line = _line(record)
        if self.records:
            self._check_whole()
        try:
            self._write(line)
        except OSError as error:
            # What was written in part, or in whole and not onto the disk, would be read as written.
            with suppress(OSError):
                self._take_back()
            if disk.met(error):
                raise disk.full(str(self.path)) from None
            raise
        self.records = (*self.records, record)
        self._size += len(line)

    def _write(self, line: bytes) -> None:
        files, folder = self._files, self.path.parent
        if not self.records:
            files.folder(folder)
            files.create(self.path)
        elif self.path.stat().st_size != self._size:
            files.cut(self.path, self._size)
            # Else a power cut could leave the new line's end with the torn one's behind it.
            files.sync(self.path)
        files.write(self.path, self._size, line)
        files.sync(self.path)
        if not self.records:
            files.sync(folder)

    def _check_whole(self) -> None:
        """Raise `DEPLOY.FENCED` when the file has more lines than we know: cutting would lose them."""
        records, size = _read(self.path)
        if size != self._size:
            raise SparkserveError(
                "DEPLOY.FENCED",
                expected=f"{len(self.records)} records, as it was read",
                found=f"{len(records)}",
                where=str(self.path),
                do="Another process goes on with this deployment: leave it to that one.",
            )

    def _take_back(self) -> None:
        if not self.records:
            self._files.remove(self.path)
        else:
            self._files.cut(self.path, self._size)
            self._files.sync(self.path)


def journals(folder: Path, files: Files | None = None) -> list[Journal]:
    """The journals in `folder`, oldest first. What they say is on the disk. Raises `DEPLOY.JOURNAL`.

    A file without a whole line is of a deployment that never began, and is left out.
    """
    files = files or Files()
    found = []
    for path in _there(folder):
        if _NAME.fullmatch(path.name) is None:
            raise _broken(path, "a file that is no journal", 0)
        records, size = _read(path)
        if records:
            found.append(Journal(path, files, records, size))
    found.sort(key=lambda journal: journal.number)
    if found:
        # Its writer may have died before this; then we would act on what a power cut takes back. Those
        # before were brought onto the disk here before this one could begin.
        files.sync(found[-1].path)
        files.sync(folder)
    return found


def _there(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _line(record: Record) -> bytes:
    text = json.dumps(record.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _read(path: Path) -> tuple[tuple[Record, ...], int]:
    """The records of a journal, and the bytes that they take in it."""
    data = path.read_bytes()
    records: list[Record] = []
    size = 0
    for line in data.split(b"\n")[:-1]:
        record = _parse(line)
        if record is None:
            break
        records.append(record)
        size += len(line) + 1
    rest = data[size:]
    # A line that was torn has no end, or holes where a power cut took a block. JSON has no NUL.
    if rest.find(b"\n") in range(len(rest) - 1) or (rest.endswith(b"\n") and b"\0" not in rest):
        raise _broken(path, "a broken line", len(records) + 1)
    return tuple(records), size


def _parse(line: bytes) -> Record | None:
    crc, _, text = line.partition(b" ")
    if crc != b"%08x" % zlib.crc32(text):
        return None
    try:
        return Record.model_validate_json(text)
    except ValidationError:
        return None


def _broken(path: Path, found: str, line: int) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.JOURNAL",
        expected="a journal as sparkserve writes it",
        found=found,
        where=f"{path}, line {line}" if line else str(path),
        do="Its disk is failing, or somebody edited it. Find out how that deployment ended; then move the "
        "file out of the folder.",
    )
