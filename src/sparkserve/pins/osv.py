"""Advisories in the format of OSV: records out of a file, folder or zip, and which versions one is about."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Package(BaseModel):
    """What an advisory is about. `ecosystem` is, for instance, `PyPI` or `Debian:12`."""

    ecosystem: str
    name: str


class Range(BaseModel):
    """`events` are of one key each: introduced, fixed or last_affected."""

    type: str
    events: tuple[dict[str, str], ...] = ()

    def includes(self, here: Any, key: Callable[[str], Any]) -> bool:
        """Whether the version with the key `here` is in it. Raises ValueError for one without order."""
        inside = any(event.get("introduced") == "0" for event in self.events)  # 0 is before all versions
        pairs = [pair for event in self.events for pair in event.items() if pair != ("introduced", "0")]
        for name, at in sorted(((name, key(text)) for name, text in pairs), key=lambda pair: pair[1]):
            if name == "introduced" and at <= here:
                inside = True
            elif (name == "fixed" and at <= here) or (name == "last_affected" and at < here):
                inside = False
        return inside


class Affected(BaseModel):
    """A package, with what of it is affected: exact versions, and ranges."""

    package: Package | None = None
    ranges: tuple[Range, ...] = ()
    versions: tuple[str, ...] = ()

    def fixed(self) -> list[str]:
        """The versions that end a range."""
        return [event["fixed"] for each in self._ordered() for event in each.events if "fixed" in event]

    def includes(self, version: str, key: Callable[[str], Any]) -> bool | None:
        """Whether `version` is affected; None where the record cannot tell. `key` orders versions."""
        if version in self.versions:
            return True
        if not self._ordered() and not self.versions:
            return None
        try:
            here = key(version)
            return any(_is(each, here, key) for each in self.versions) or any(
                each.includes(here, key) for each in self._ordered()
            )
        except ValueError:
            return None

    def _ordered(self) -> list[Range]:
        """The ranges of versions; others are of commits."""
        return [each for each in self.ranges if each.type == "ECOSYSTEM"]


def _is(version: str, here: Any, key: Callable[[str], Any]) -> bool:
    with suppress(ValueError):  # one of old days that no rule orders, which no pin can have
        return bool(key(version) == here)
    return False


class Advisory(BaseModel):
    """A record. One that is `withdrawn` says that it is not true."""

    id: str
    summary: str = ""
    aliases: tuple[str, ...] = ()
    withdrawn: str | None = None
    affected: tuple[Affected, ...] = ()


_RECORDS: TypeAdapter[Advisory | list[Advisory]] = TypeAdapter(Advisory | list[Advisory])


def read(place: Path) -> Iterator[Advisory]:
    """The records of a JSON file (one or a list), of all those in a folder, or in a zip, in order of names.

    Raises `PIN.ADVISORIES` for a file that holds none.
    """
    for name, content in _files(place):
        try:
            found = _RECORDS.validate_json(content)
        except ValidationError as error:
            first = error.errors()[-1]
            raise _refused(
                name, f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the top'}"
            ) from None
        yield from found if isinstance(found, list) else [found]


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    if place.is_dir():
        for file in sorted(place.rglob("*.json")):
            yield str(file), file.read_bytes()
    elif zipfile.is_zipfile(place):
        try:
            with zipfile.ZipFile(place) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith(".json"):
                        yield f"{place}: {name}", archive.read(name)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise _refused(str(place), f"a zip that cannot be read: {error}") from None
    else:
        yield str(place), place.read_bytes()


def _refused(where: str, found: str) -> SparkserveError:
    return SparkserveError(
        "PIN.ADVISORIES",
        expected="advisories in the format of OSV: a record, a list, or a folder or zip of such files",
        found=found,
        where=where,
        do="Download it again; the databases of OSV have a zip for each ecosystem.",
    )
