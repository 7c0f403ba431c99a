"""What /proc shows of one process: its words, its environment, its mounts, the files that it has mapped.

All raise OSError when it is gone, or not ours to look at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.engine import procfs

if TYPE_CHECKING:
    from pathlib import Path

_GONE = " (deleted)"


class Mount(NamedTuple):
    """A mount: its place, what of which file system is there (`root` of `source`), and how."""

    target: str
    root: str
    options: frozenset[str]
    kind: str
    source: str
    settings: frozenset[str]


class Mapped(NamedTuple):
    """A file that is mapped, by its path in the process's root. `runs`: parts of it are executable."""

    path: str
    inode: int
    runs: bool
    deleted: bool


def folder(pid: int) -> Path:
    """Where /proc has the process."""
    return procfs.PROC / str(pid)


def words(pid: int) -> list[str]:
    """Its program and arguments."""
    return _strings((folder(pid) / "cmdline").read_bytes())


def environment(pid: int) -> dict[str, str]:
    """The environment that it was started with. What it changed since is not there."""
    pairs = (text.partition("=") for text in _strings((folder(pid) / "environ").read_bytes()))
    return {name: value for name, equals, value in pairs if equals}


def mounts(pid: int) -> list[Mount]:
    """Every mount that it sees, in the order they were made."""
    found = []
    for line in (folder(pid) / "mountinfo").read_text(errors="replace").splitlines():
        # Optional fields stand before the hyphen.
        mine, _, rest = line.partition(" - ")
        _, _, _, root, target, options, *_ = mine.split(" ")
        kind, source, settings = rest.split(" ", 2)
        found.append(
            Mount(
                *(_plain(target), _plain(root), frozenset(options.split(","))),
                *(kind, _plain(source), frozenset(settings.split(","))),
            )
        )
    return found


def mapped(pid: int) -> list[Mapped]:
    """The files that it has mapped, each once."""
    found: dict[tuple[str, str], Mapped] = {}
    for line in (folder(pid) / "maps").read_text(errors="replace").splitlines():
        fields = line.split(None, 5)
        # Without a path it is memory of its own, and "[heap]" is no file.
        if len(fields) < 6 or not fields[5].startswith("/"):
            continue
        path = fields[5].removesuffix(_GONE)
        key = fields[4], fields[5]
        runs = "x" in fields[1] or (key in found and found[key].runs)
        found[key] = Mapped(path, int(fields[4]), runs, path != fields[5])
    return list(found.values())


def _strings(data: bytes) -> list[str]:
    return [part.decode(errors="replace") for part in data.removesuffix(b"\0").split(b"\0")] if data else []


def _plain(text: str) -> str:
    """A path as it is: the kernel writes blanks and the like in octal."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
