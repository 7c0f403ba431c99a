"""The libraries and programs that an engine has loaded, against its root and the plan's `engine.binds`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.drift.report import Difference, difference
from sparkserve.engine import inside, procfs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.drift.engine import Engine
    from sparkserve.drift.line import Wanted
    from sparkserve.engine.inside import Mapped


class Loaded(NamedTuple):
    """What all processes of an engine have loaded, `looked_at` files. `compiled` are those that it made, in
    folders of its own in memory: kernels are compiled at run time."""

    looked_at: int
    compiled: tuple[str, ...]
    differences: tuple[Difference, ...]


def loaded(engine: Engine) -> Loaded:
    """What the processes of `engine` have loaded. A process that ends meanwhile is passed over."""
    found: dict[Mapped, int] = {}
    # bubblewrap and its child are outside of the root: their program is a part of `isolation`.
    outside = {engine.monitor, *(process.pid for process in procfs.children(engine.monitor))}
    for pid in procfs.tree(engine.monitor):
        if pid not in outside:
            with suppress(FileNotFoundError, ProcessLookupError):
                found |= {file: pid for file in inside.mapped(pid) if _is_code(file)}
    wanted = engine.wanted.mounts
    compiled = [file.path for file in found if _kind(file, wanted) == "--tmpfs"]
    differences = [
        each for file, pid in found.items() if (each := _difference(file, pid, wanted)) is not None
    ]
    return Loaded(len(found), tuple(sorted(compiled)), tuple(differences))


def _is_code(file: Mapped) -> bool:
    # Data is mapped too: weights, tables, shared memory.
    return file.runs or ".so" in PurePosixPath(file.path).name


def _place(file: Mapped, wanted: Mapping[str, Wanted]) -> str | None:
    """The deepest mount that the file is below."""
    path = PurePosixPath(file.path)
    return next((str(each) for each in (path, *path.parents) if str(each) in wanted), None)


def _kind(file: Mapped, wanted: Mapping[str, Wanted]) -> str | None:
    place = _place(file, wanted)
    return None if place is None else wanted[place].kind


def _difference(file: Mapped, pid: int, wanted: Mapping[str, Wanted]) -> Difference | None:
    place = _place(file, wanted)
    if place is None or wanted[place].kind not in ("--ro-bind", "--tmpfs"):
        return difference("libraries", file.path, None, f"loaded by process {pid}")
    if wanted[place].kind == "--tmpfs":
        return None
    source = Path(wanted[place].source)
    there = source if file.path == place else source / file.path.removeprefix(place).lstrip("/")
    try:
        inode = there.stat().st_ino
    except FileNotFoundError:
        return difference("libraries", file.path, None, f"loaded by process {pid}, not in {source}")
    # By number alone: some file systems tell another device in /proc than stat does.
    if file.deleted or inode != file.inode:
        state = "deleted since" if file.deleted else f"inode {file.inode}"
        return difference(
            "libraries", file.path, f"{there}, inode {inode}", f"{state}, loaded by process {pid}"
        )
    return None
