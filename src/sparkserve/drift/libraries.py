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
    compiled = [file.path for file in found if _is_own(file, wanted)]
    foreign = {file: pid for file, pid in found.items() if not _is_own(file, wanted)}
    differences = [
        each for file, pid in foreign.items() if (each := _difference(file, pid, wanted)) is not None
    ]
    return Loaded(len(found), tuple(sorted(compiled)), tuple(differences))


def _is_code(file: Mapped) -> bool:
    # Data is mapped too: weights, tables, shared memory.
    return file.runs or ".so" in PurePosixPath(file.path).name


def _is_own(file: Mapped, wanted: Mapping[str, Wanted]) -> bool:
    """Whether the engine made it: in a folder in memory, or as a file that has never had a name."""
    place = _place(file, wanted)
    return file.path.startswith("/memfd:") or (place is not None and wanted[place].kind == "--tmpfs")


def _place(file: Mapped, wanted: Mapping[str, Wanted]) -> str | None:
    """The deepest mount that the file is below."""
    path = PurePosixPath(file.path)
    return next((str(each) for each in (path, *path.parents) if str(each) in wanted), None)


def _difference(file: Mapped, pid: int, wanted: Mapping[str, Wanted]) -> Difference | None:
    place, by = _place(file, wanted), f"loaded by process {pid}"
    if place is None or not wanted[place].source:
        return difference("libraries", file.path, None, by)
    source = Path(wanted[place].source)
    there = source if file.path == place else source / file.path.removeprefix(place).lstrip("/")
    try:
        inode = there.stat().st_ino
    except FileNotFoundError:
        return difference("libraries", file.path, None, f"{by}, not in {source}")
    # By number alone: some file systems tell another device in /proc than stat does.
    if file.deleted or inode != file.inode:
        state = "deleted since" if file.deleted else f"inode {file.inode}"
        return difference("libraries", file.path, f"{there}, inode {inode}", f"{state}, {by}")
    return None
