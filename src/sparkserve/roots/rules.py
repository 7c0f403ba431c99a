"""The rules about single files of a root: machine, modes, and where a reference may point."""

from __future__ import annotations

import re
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sparkserve.roots.tree import Root

# A tag that moves, and an address that somebody would fetch from.
_MUTABLE = re.compile(r"\blatest\b|\bhttps?://\S+|\bgit\+\S+")


def machines(root: Root, machine: str, data: Mapping[str, str]) -> Iterator[str]:
    """Every ELF file is for `machine`, or `data` (patterns of paths, with a reason) says that none loads it.

    A pattern that no file needs is told too: the list says what is in the root, and nothing else.
    """
    unused = set(data)
    wrong = {path: f"is for {each.machine}" for path, each in root.elves.items() if each.machine != machine}
    for path, problem in sorted((root.damaged | wrong).items()):
        fitting = {pattern for pattern in data if fnmatchcase(path, pattern)}
        unused -= fitting
        if not fitting:
            yield f"{path} {problem}, the root is for {machine}"
    for pattern in sorted(unused):
        yield f"{pattern} is listed as data of another machine, and there is no such file"


def modes(root: Root) -> Iterator[str]:
    """Nothing takes its owner's rights when it runs, and nothing can be written by everybody."""
    for path, place in root.places():
        mode = place.lstat().st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(mode):
            yield f"{path} is setuid or setgid (mode {stat.S_IMODE(mode):04o})"
        if mode & stat.S_IWOTH and not stat.S_ISLNK(mode):
            yield f"{path} is writable by everybody (mode {stat.S_IMODE(mode):04o})"


def references(texts: Mapping[str, str]) -> Iterator[str]:
    """No text, by its name, refers to what can change under it: a tag `latest`, an address, a repository."""
    for name, text in sorted(texts.items()):
        for number, line in enumerate(text.splitlines(), 1):
            for found in _MUTABLE.findall(line):
                yield f"{name}:{number} refers to {found!r}, whose content can change"
