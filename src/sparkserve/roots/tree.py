"""An engine root as one tree, made of its layers without mounting them."""

from __future__ import annotations

import os
import posixpath
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.roots import elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LINKS = 40  # as the kernel's


class Root:
    """The files of an engine root, by the path that they have in it.

    `layers`: (where it stands, its folder on this machine), those below first.
    """

    def __init__(self, layers: Iterable[tuple[str, Path]]) -> None:
        self._places: dict[str, Path] = {"/": Path("/nonexistent")}
        for target, folder in layers:
            self._add(target.rstrip("/"), folder)

    def _add(self, target: str, folder: Path) -> None:
        parts = target.split("/")[1:]
        self._places |= {"/" + "/".join(parts[: i + 1]): folder for i in range(len(parts))}
        for base, folders, files in os.walk(folder):
            inside = target + base[len(str(folder)) :]
            self._places |= {f"{inside}/{name}": Path(base, name) for name in (*folders, *files)}

    def places(self) -> Iterator[tuple[str, Path]]:
        """Everything in the root, sorted by its path there: (that path, where it is on this machine)."""
        yield from sorted((path, place) for path, place in self._places.items() if path != "/")

    def find(self, path: str) -> str | None:
        """The path that `path` comes to when every link in it is followed; None when nothing is there."""
        rest, found, links = [part for part in path.split("/") if part], "/", 0
        while rest:
            part = rest.pop(0)
            if part in (".", ".."):
                found = posixpath.dirname(found) if part == ".." else found
                continue
            step = posixpath.join(found, part)
            place = self._places.get(step)
            if place is None:
                return None
            if place.is_symlink():
                links += 1
                if links > _LINKS:
                    return None
                target = str(place.readlink())
                rest = [each for each in target.split("/") if each] + rest
                found = "/" if target.startswith("/") else found
            else:
                found = step
        return found

    def text(self, path: str) -> str:
        """The content of a file of the root, followed through its links. Raises FileNotFoundError."""
        found = self.find(path)
        if found is None:
            raise FileNotFoundError(path)
        return self._places[found].read_text()

    def named(self, name: str) -> list[str]:
        """The paths, sorted, whose last part is `name`."""
        return sorted(path for path in self._places if posixpath.basename(path) == name)

    def names(self, folder: str) -> list[str]:
        """The names in a folder of the root, sorted, of whichever layers; no link leads to `folder`."""
        return sorted(path[len(folder) + 1 :] for path in self._places if posixpath.dirname(path) == folder)

    @property
    def elves(self) -> dict[str, elf.Elf]:
        """Every ELF file that can be read, by its path in the root."""
        return self._read[0]

    @property
    def damaged(self) -> dict[str, str]:
        """What is wrong with the ELF files that cannot be read."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[dict[str, elf.Elf], dict[str, str]]:
        good, bad = {}, {}
        for path, place in self.places():
            if place.is_symlink() or not place.is_file():
                continue
            try:
                found = elf.read(place)
            except elf.ElfError as error:
                bad[path] = str(error)
            else:
                if found is not None:
                    good[path] = found
        return good, bad
