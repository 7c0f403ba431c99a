"""What a power cut may leave of files: every subset of what was not synced, with writes torn.

A trace is the list of calls of `sparkserve.deploy.files.Files`. What is synced is there. Of what is not, each
name and each write may be there or not; of a write also only its beginning, or its size without some of its
bytes, which are then zeros.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.deploy.files import Files

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence


class Op(NamedTuple):
    """One call: its name, its path, and what else it takes."""

    name: str
    path: Path
    at: int = 0
    data: bytes = b""
    target: str = ""


class Recording(Files):
    """Files that keep the trace of what is done, for which `before` is called first. Syncs take no time."""

    def __init__(self, before: Callable[[int], None] = lambda number: None) -> None:
        self.trace: list[Op] = []
        self._before = before

    def _note(self, op: Op) -> None:
        self._before(len(self.trace))
        self.trace.append(op)

    def folder(self, path: Path) -> None:
        """Folders are taken as always there: who makes them syncs them at once."""
        path.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path) -> None:
        """See `Files`."""
        self._note(Op("create", path))
        super().create(path)

    def write(self, path: Path, at: int, data: bytes) -> None:
        """See `Files`."""
        self._note(Op("write", path, at, data))
        super().write(path, at, data)

    def cut(self, path: Path, size: int) -> None:
        """See `Files`."""
        self._note(Op("cut", path, size))
        super().cut(path, size)

    def remove(self, path: Path) -> None:
        """See `Files`."""
        self._note(Op("remove", path))
        super().remove(path)

    def link(self, path: Path, target: str) -> None:
        """See `Files`."""
        self._note(Op("link", path, target=target))
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def sync(self, path: Path) -> None:
        """See `Files`."""
        self._note(Op("sync", path))


Tree = dict[Path, bytes | str]  # a file's bytes or a link's target


def outcomes(trace: Sequence[Op], before: Tree | None = None) -> Iterator[Tree]:
    """Every tree that a power cut after `trace` may leave of the tree `before`."""
    for chosen in itertools.product(*(_ends(trace, number) for number in range(len(trace)))):
        yield _replay(chosen, before or {})


def outcome(random_: random.Random, trace: Sequence[Op], before: Tree) -> Tree:
    """One of them by chance."""
    return _replay([random_.choice(list(_ends(trace, number))) for number in range(len(trace))], before)


def read(folder: Path) -> Tree:
    """The files and links below a folder."""
    return {
        path: str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def write(folder: Path, tree: Tree) -> None:
    """Make what is below a folder be `tree`."""
    for path in read(folder):
        if path not in tree:
            path.unlink()
    for path, value in tree.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            path.symlink_to(value)


def _ends(trace: Sequence[Op], number: int) -> Iterator[tuple[Op, ...]]:
    """What may be left of one call of the trace: nothing, all of it, or for a write some of it."""
    op = trace[number]
    yield (op,)
    if op.name == "sync" or _synced(op, trace[number + 1 :]):
        return
    yield ()
    if op.name == "write":
        yield from _torn(op)


def _synced(op: Op, later: Sequence[Op]) -> bool:
    if op.name == "link":
        return True  # on the disk when it returns
    where = op.path if op.name in ("write", "cut") else op.path.parent
    return any(
        (each.name == "sync" and each.path == where)
        or (each.name == "link" and op.name in ("create", "remove") and each.path.parent == where)
        for each in later
    )


def _torn(op: Op) -> Iterator[tuple[Op, ...]]:
    for end in range(1, len(op.data)):
        yield (op._replace(data=op.data[:end]),)
    third = max(1, len(op.data) // 3)
    places = range(0, len(op.data), third)
    for lost in range(1, 2 ** len(places) - 1):
        there = [at for bit, at in enumerate(places) if not lost >> bit & 1]
        whole = op._replace(name="size", at=op.at + len(op.data), data=b"")
        yield (
            whole,
            *(op._replace(at=op.at + at, data=op.data[at : at + third]) for at in there),
        )


def _replay(chosen: Sequence[tuple[Op, ...]], before: Tree) -> Tree:
    """The tree after what is left of each call. A file whose name is lost is lost with it."""
    tree = dict(before)
    for op in itertools.chain.from_iterable(chosen):
        there = tree.get(op.path)
        match op.name:
            case "create":
                tree[op.path] = b""
            case "remove":
                tree.pop(op.path, None)
            case "link":
                tree[op.path] = op.target
            case "cut" if isinstance(there, bytes):
                tree[op.path] = there[: op.at]
            case "size" if isinstance(there, bytes):
                tree[op.path] = there.ljust(op.at, b"\0")
            case "write" if isinstance(there, bytes):
                padded = there.ljust(op.at, b"\0")
                tree[op.path] = padded[: op.at] + op.data + padded[op.at + len(op.data) :]
    return tree
