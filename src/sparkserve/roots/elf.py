"""What an ELF file asks of its loader: machine, libraries, the folders to look in, and symbol versions."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"\x7fELF"
MACHINES = {62: "x86_64", 183: "aarch64", 190: "cuda"}

_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_WEAK = 2
_TEXT = 4096  # no name in a string table is longer


class ElfError(Exception):
    """A file that starts like an ELF file and is none that a 64-bit machine here could load."""


@dataclass(frozen=True)
class Elf:
    """An ELF file. `loader`: what starts it, for a program that is not static. `defines`: the symbol versions
    that it has. `wants`: those that it needs, by library.
    """

    machine: str
    loader: str = ""
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    defines: frozenset[str] = frozenset()
    wants: tuple[tuple[str, str], ...] = ()


def read(path: Path) -> Elf | None:
    """Read an ELF file; None for any other file. Raises `ElfError`."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            return None
        try:
            return _Reader(file).elf()
        except (struct.error, UnicodeDecodeError) as error:
            raise ElfError(f"is damaged: {error}") from error


class _Reader:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        width, order = self._unpack("BB", 4)
        if (width, order) != (2, 1):
            raise ElfError(f"is not 64-bit and little-endian (class {width}, data {order})")
        number = self._unpack("<H", 18)[0]
        self.machine = MACHINES.get(number, f"machine {number}")
        start = self._unpack("<Q", 32)[0]
        size, count = self._unpack("<HH", 54)
        # type, offset in the file, address, bytes in the file
        self.segments = [self._unpack("<I4xQQ8xQ", start + i * size) for i in range(count)]

    def elf(self) -> Elf:
        entries = list(self._dynamic())
        tags = dict(entries)
        starter = next((at for kind, at, _, _ in self.segments if kind == _INTERP), None)
        loader = "" if starter is None else self._name(starter)
        if _STRTAB not in tags:
            return Elf(self.machine, loader)
        self.strings = self._offset(tags[_STRTAB])
        return Elf(
            machine=self.machine,
            loader=loader,
            soname=self._text(tags[_SONAME]) if _SONAME in tags else "",
            needed=tuple(self._text(value) for tag, value in entries if tag == _NEEDED),
            rpath=self._folders(tags.get(_RPATH)),
            runpath=self._folders(tags.get(_RUNPATH)),
            defines=frozenset(self._defined(tags)),
            wants=tuple(sorted(self._wanted(tags))),
        )

    def _bytes(self, offset: int, size: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(size)

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack(form, self._bytes(offset, struct.calcsize(form)))

    def _offset(self, address: int) -> int:
        for kind, offset, start, size in self.segments:
            if kind == _LOAD and start <= address < start + size:
                return address - start + offset
        raise ElfError(f"is damaged: no segment holds the address {address:#x}")

    def _text(self, index: int) -> str:
        return self._name(self.strings + index)

    def _name(self, offset: int) -> str:
        return self._bytes(offset, _TEXT).partition(b"\0")[0].decode()

    def _folders(self, index: int | None) -> tuple[str, ...]:
        return () if index is None else tuple(filter(None, self._text(index).split(":")))

    def _dynamic(self) -> Iterator[tuple[int, int]]:
        for kind, offset, _, size in self.segments:
            if kind == _DYNAMIC:
                for tag, value in struct.iter_unpack("<qQ", self._bytes(offset, size - size % 16)):
                    if tag == 0:
                        return
                    yield tag, value

    def _defined(self, tags: dict[int, int]) -> Iterator[str]:
        """Names in the table of version definitions; each entry's first name is its own."""
        if _VERDEF in tags:
            at = self._offset(tags[_VERDEF])
            for _ in range(tags.get(_VERDEFNUM, 0)):
                first, following = self._unpack("<II", at + 12)
                yield self._text(self._unpack("<I", at + first)[0])
                if not following:
                    return
                at += following

    def _wanted(self, tags: dict[int, int]) -> Iterator[tuple[str, str]]:
        if _VERNEED in tags:
            at = self._offset(tags[_VERNEED])
            for _ in range(tags.get(_VERNEEDNUM, 0)):
                count, library, first, following = self._unpack("<2xHIII", at)
                name, entry = self._text(library), at + first
                for _ in range(count):
                    flags, version, step = self._unpack("<4xH2xII", entry)
                    # A weak one may be missing: the loader says nothing.
                    if not flags & _WEAK:
                        yield name, self._text(version)
                    entry += step
                if not following:
                    return
                at += following
