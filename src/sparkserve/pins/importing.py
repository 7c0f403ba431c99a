"""`pins import`: brings the pins of an export into the store, without a network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import disk
from sparkserve.errors import SparkserveError
from sparkserve.pins import carried, model, store, workspace
from sparkserve.pins.progress import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sparkserve.pins.model import Pin


class Taken(NamedTuple):
    """How many pins the export's profiles have, and the bytes that this run added."""

    pins: int
    added: int


def take(folder: Path) -> Taken:
    """Add to the store what it lacks of the profiles that `folder` was exported for.

    What the bytes must be is what this checkout's pin lists say. Raises `PIN.INDEX`, and `PIN.HASH` or
    `PIN.MISSING` naming every file that is damaged or absent, after the right ones are in.
    """
    index = carried.read(folder)
    lists = [model.load(name) for name in sorted(index.profiles)]
    every = {pin.path: pin for each in lists for pin in each.pins}
    added, damaged, absent = 0, [], []
    if store.missing(every):
        with workspace.locked():
            # Another run may have brought them while this one waited.
            lacking = store.missing(every)
            pins = [pin for path, pin in every.items() if path in lacking and pin.kind != "tree"]
            killed = workspace.left_over(pins)
            workspace.into_store(killed)
            pins = [pin for pin in pins if pin not in killed]
            # A copy of one at a time: the file is the user's, and adding changes its mode.
            disk.need(workspace.folder(), max((pin.size for pin in pins), default=0))
            disk.need(Path(store.STORE), sum(pin.size for pin in pins))
            with bar("Import pins") as progress:
                task = progress.add_task("", total=sum(pin.size for pin in pins))
                for pin in pins:
                    file = folder / carried.FILES / pin.file
                    if not file.is_file():
                        absent.append(pin)
                    elif _one(pin, file, lambda count: progress.advance(task, count)):
                        added += pin.size
                    else:
                        damaged.append(pin)
            if not damaged and not absent:
                workspace.plant_all(lists, lacking)
    if damaged or absent:
        raise _refused(folder, index, damaged, absent)
    store.keep(every)
    return Taken(len(every), added)


def _one(pin: Pin, file: Path, done: Callable[[int], None]) -> bool:
    """Add one file; whether it was the right one."""
    if file.stat().st_size != pin.size:
        return False
    with workspace.scratch() as folder:
        copy = folder / pin.file
        if carried.copy(file, copy, done) != pin.sha256:
            return False
        workspace.into_store({pin: copy})
    return True


def _refused(
    folder: Path, index: carried.Index, damaged: Iterable[Pin], absent: Iterable[Pin]
) -> SparkserveError:
    """One error for all: damage first, as it may be the medium's."""
    of_index = {each.name: each.sha256 for each in index.files}
    # Whole, and right for the export, but the lists here are of another day.
    other = [pin for pin in damaged if of_index.get(pin.file) not in (pin.sha256, None)]
    bad = [pin for pin in damaged if pin not in other]
    gone = [*absent, *other]
    parts = [(len(bad), "damaged", bad), (len(gone), "missing", gone)]
    found = "; ".join(
        f"{count} {word}: {', '.join(sorted(pin.file for pin in pins))}"
        for count, word, pins in parts
        if count
    )
    return SparkserveError(
        "PIN.HASH" if bad else "PIN.MISSING",
        expected=f"the files of {', '.join(sorted(index.profiles))} as this checkout's nix/pins has them",
        found=found,
        where=str(folder),
        do="Nothing damaged was kept. Where the pins are, with this checkout's commit, run again: "
        f"./sparkserve pins export {shlex.quote(str(folder))}; it mends what is wrong. Then import again.",
    )
