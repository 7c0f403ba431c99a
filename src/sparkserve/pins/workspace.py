"""The folder that files are downloaded into, and their way from there into the store."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import checkout, disk
from sparkserve.errors import SparkserveError, not_root
from sparkserve.pins import processes, store, tree
from sparkserve.pins.model import Pin, clean_name
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from sparkserve.pins.model import PinList


def folder() -> Path:
    """Where downloads lie until they are in the store."""
    return checkout.state() / "downloads"


@contextmanager
def locked() -> Iterator[None]:
    """Let one `fetch` or `lock` download at a time; a second one waits and then finds the work done.

    Raises `HOST.DISK` and `HOST.ROOT` for what the body meets when it writes.
    """
    try:
        with disk.guarded(folder()), (checkout.state() / "pins.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                console.print("Waiting for another `pins fetch` or `pins lock` to finish.")
                fcntl.flock(file, fcntl.LOCK_EX)
            folder().mkdir(exist_ok=True)
            with processes.sharing(file.fileno()):
                yield
    except PermissionError as error:
        raise not_root(str(error.filename)) from error


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one download. A kill or an interrupt leaves it; `left_over` takes what is whole in it."""
    base = Path(tempfile.mkdtemp(dir=folder()))
    try:
        yield base
    except KeyboardInterrupt:
        raise
    except BaseException:
        shutil.rmtree(base)
        raise
    shutil.rmtree(base)


def left_over(wanted: Iterable[Pin]) -> dict[Pin, Path]:
    """Right and whole files that a killed run left, by pin; the rest of it is removed. Needs the lock."""
    by_file = {(pin.file, pin.size): pin for pin in wanted}
    found: dict[Pin, Path] = {}
    for path in [p for p in folder().rglob("*") if p.is_file() and not p.is_symlink()]:
        pin = by_file.get((clean_name(path.name), path.stat().st_size))
        if pin is not None and pin not in found and store.file_sha256(path) == pin.sha256:
            found[pin] = path.rename(folder() / pin.file)
    for entry in folder().iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry not in found.values():
            entry.unlink()
    return found


def size() -> int:
    """Bytes of wheels and debs that lie in the folder now; pip's copy of a file on its way counts once."""
    sizes: dict[str, int] = {}
    for base, _, names in os.walk(folder()):
        for name in names:
            if name.endswith((".whl", ".deb")):
                # pip or `into_store` may remove it at any moment.
                with suppress(FileNotFoundError):
                    sizes[name] = max(sizes.get(name, 0), (Path(base) / name).stat().st_size)
    return sum(sizes.values())


def into_store(files: Mapping[Pin, Path]) -> None:
    """Check every file's hash, add it, protect it from garbage collection and remove the download.

    Raises `PIN.HASH` for the first wrong file, after the right ones are in.
    """
    wrong: list[SparkserveError] = []
    links: dict[Pin, Path] = {}
    with tempfile.TemporaryDirectory(dir=folder()) as names:
        for pin, path in files.items():
            found = store.file_sha256(path)
            if found == pin.sha256:
                # Nix takes the store name from the file name.
                links[pin] = Path(names) / pin.file
                links[pin].hardlink_to(path)
            else:
                wrong.append(_wrong_hash(pin, f"{found} ({path.stat().st_size} bytes)"))
        added = store.add(list(links.values()))
        store.keep(added)
    for pin in links:
        files[pin].unlink()
    if wrong:
        raise wrong[0]


def plant(pin: Pin, deb: Path) -> None:
    """Make a tree pin from its deb and add it. Raises `PIN.HASH` when it comes out different."""
    assert pin.member is not None  # noqa: S101 - the pin list's reader has checked it
    with tree.unpacked(deb, pin.member, pin.name) as made:
        found = store.tree_sha256(made)
        if found != pin.sha256:
            raise _wrong_hash(pin, found)
        store.keep(store.add([made], recursive=True))


def plant_all(lists: Iterable[PinList], lacking: Collection[str]) -> None:
    """`plant` those of the tree pins of `lists` whose paths are `lacking`; the store has their debs."""
    for each in lists:
        for pin in each.pins:
            if pin.kind == "tree" and pin.path in lacking:
                deb = next(p for p in each.pins if p.file == pin.source)
                plant(pin, Path(deb.path))


def _wrong_hash(pin: Pin, found: str) -> SparkserveError:
    return SparkserveError(
        "PIN.HASH",
        expected=f"{pin.file} with sha256 {pin.sha256} ({pin.size} bytes)",
        found=found,
        where=f"{pin.kind} {pin.name} {pin.version}",
        do="Nothing of it was kept. Fetch again, or name another source with --from or --mirror; if upstream "
        "replaced the file on purpose, run ./sparkserve pins lock and look at the change.",
    )
