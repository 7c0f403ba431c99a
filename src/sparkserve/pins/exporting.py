"""`pins export`: the pins' files and an index of them, for a machine without a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import disk
from sparkserve.errors import SparkserveError
from sparkserve.pins import BUILDER, carried, model, store, workspace
from sparkserve.pins.progress import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sparkserve.pins.model import Pin


class Written(NamedTuple):
    """How many files an export has, their bytes, and the bytes that this run copied."""

    files: int
    size: int
    copied: int


def export(folder: Path, profiles: Sequence[str]) -> Written:
    """Write the pins of `profiles`, and those that the harness is built from, into `folder`, which is made.

    A tree is made from a deb, so it does not travel. A run that was stopped is finished by the next: a right
    file stays. Raises `PIN.MISSING` and `PIN.HASH` for what the store lacks or has damaged.
    """
    lists = [model.load(name) for name in sorted({*profiles, *BUILDER})]
    pins = _by_name(pin for each in lists for pin in each.pins if pin.kind != "tree")
    _all_there(pins.values(), [each.profile for each in lists])
    index = carried.Index(
        profiles={each.profile: each.locked for each in lists},
        files=tuple(
            carried.Carried(name=pin.file, sha256=pin.sha256, size=pin.size) for pin in pins.values()
        ),
    )
    files = folder / carried.FILES
    # One at a time: two would write the same partial files.
    with workspace.locked(), disk.guarded(folder):
        files.mkdir(parents=True, exist_ok=True)
        _open(folder, index)
        copied = _copy(list(pins.values()), files)
        _write_index(folder, index)
    return Written(len(pins), sum(pin.size for pin in pins.values()), copied)


def _by_name(pins: Iterable[Pin]) -> dict[str, Pin]:
    found: dict[str, Pin] = {}
    for pin in sorted(pins, key=lambda pin: pin.file):
        if found.setdefault(pin.file, pin).sha256 != pin.sha256:
            raise SparkserveError(
                "PIN.PROFILE",
                expected=f"one file of the name {pin.file} in all profiles",
                found="two, with other bytes each",
                where="nix/pins",
                do="Lock them again, or export one profile at a time.",
            )
    return found


def _all_there(pins: Iterable[Pin], profiles: Sequence[str]) -> None:
    by_path = {pin.path: pin.file for pin in pins}
    if absent := store.missing(by_path):
        raise SparkserveError(
            "PIN.MISSING",
            expected=f"{len(by_path)} pins in the store",
            found=f"{len(absent)} missing: {', '.join(sorted(by_path[path] for path in absent))}",
            where=store.STORE,
            do=f"Run: ./sparkserve pins fetch {' '.join(profiles)}",
        )


def _text(index: carried.Index) -> str:
    return index.model_dump_json(by_alias=True, indent=2) + "\n"


def _open(folder: Path, index: carried.Index) -> None:
    """Take away what a run that was stopped left half made, and an index that is not true any more."""
    for left in (*folder.glob(f"*{carried.PARTIAL}"), *(folder / carried.FILES).glob(f"*{carried.PARTIAL}")):
        left.unlink()
    file = folder / carried.INDEX
    if file.exists() and file.read_bytes() != _text(index).encode():
        file.unlink()


def _copy(pins: Sequence[Pin], files: Path) -> int:
    size = sum(pin.size for pin in pins)
    with bar("Export pins") as progress:
        task = progress.add_task("", total=size)
        lacking = []
        for pin in pins:
            if _is_right(files / pin.file, pin):
                progress.advance(task, pin.size)
            else:
                lacking.append(pin)
        copied = sum(pin.size for pin in lacking)
        disk.need(files, copied)
        for pin in lacking:
            _one(pin, files / pin.file, lambda count: progress.advance(task, count))
    disk.sync(files)
    return copied


def _is_right(file: Path, pin: Pin) -> bool:
    return file.is_file() and file.stat().st_size == pin.size and store.file_sha256(file) == pin.sha256


def _one(pin: Pin, file: Path, done: Callable[[int], None]) -> None:
    partial = file.with_name(file.name + carried.PARTIAL)
    found = carried.copy(Path(pin.path), partial, done)
    if found != pin.sha256:
        partial.unlink()
        raise SparkserveError(
            "PIN.HASH",
            expected=f"{pin.file} with sha256 {pin.sha256}",
            found=found,
            where=pin.path,
            do=f"Remove it with: ./sparkserve nix store delete --ignore-liveness {pin.path}; then fetch, or "
            "import, the profile that has it again.",
        )
    partial.replace(file)


def _write_index(folder: Path, index: carried.Index) -> None:
    file = folder / carried.INDEX
    partial = file.with_name(file.name + carried.PARTIAL)
    with partial.open("w") as writer:
        writer.write(_text(index))
        writer.flush()
        os.fsync(writer.fileno())
    partial.replace(file)
    disk.sync(folder)
