"""`pins fetch`: brings into the store what it lacks of the pin lists, several downloads at a time."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import disk
from sparkserve.errors import SparkserveError
from sparkserve.pins import apt, model, pip, processes, store, workspace
from sparkserve.pins.model import Pin, clean_name
from sparkserve.pins.progress import bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sparkserve.pins.model import PinList, Target

WORKERS = 3
# Small wheels share one pip, which takes about a second to start; a large one has a pip of its own.
_BATCH_BYTES = 24 << 20
_BATCH_FILES = 12


def fetch(profiles: Sequence[str], given: Sequence[str], mirror: str | None) -> int:
    """Fetch all pins of `profiles` that the store lacks; return the bytes that came in.

    `given`: folders and indexes to look in first. `mirror`: a Debian mirror in place of the machine's own.
    Raises `PIN.FETCH`, `PIN.HASH`, `HOST.DISK`; what was right by then is in the store and stays there.
    """
    lists = [model.load(name) for name in profiles]
    every = {pin.path for each in lists for pin in each.pins}
    total = 0
    if store.missing(every):
        with workspace.locked():
            # Another run may have brought them while this one waited.
            total = _Fetch(lists, store.missing(every), given, mirror).run()
    store.keep(every)
    return total


def batches(files: Mapping[Pin, Target]) -> Iterator[list[Pin]]:
    """Divide pins into downloads: the debs of an apt root, then large wheels alone, then small ones together.

    All wheels of a batch have one target, and no two the same name: pip refuses two versions in one call.
    """
    debs = [pin for pin in files if pin.kind == "deb"]
    for root in sorted({apt.root_name(files[pin]) for pin in debs}):
        yield [pin for pin in debs if apt.root_name(files[pin]) == root]
    batch: list[Pin] = []
    for pin in sorted((p for p in files if p.kind == "wheel"), key=lambda p: (-p.size, p.file)):
        full = len(batch) == _BATCH_FILES or sum(p.size for p in batch) + pin.size > _BATCH_BYTES
        twice = any(p.name == pin.name for p in batch)
        if batch and (full or twice or files[pin] != files[batch[0]]):
            yield batch
            batch = []
        batch.append(pin)
    if batch:
        yield batch


class _Fetch:
    def __init__(
        self, lists: Sequence[PinList], lacking: set[str], given: Sequence[str], mirror: str | None
    ) -> None:
        self.lists, self.lacking, self.given, self.mirror = lists, lacking, given, mirror
        wanted = {pin.path: (pin, each.target) for each in lists for pin in each.pins if pin.kind != "tree"}
        self.files = dict(pair for path, pair in wanted.items() if path in lacking)
        self.total = sum(pin.size for pin in self.files)
        self.done = 0

    def run(self) -> int:
        self._take(workspace.left_over(self.files))
        for place in self.given:
            if "://" not in place:
                self._take_from(Path(place))
        if self.files:
            self._check_space()
            self._download()
        workspace.plant_all(self.lists, self.lacking)
        return self.total

    def _take(self, found: Mapping[Pin, Path]) -> None:
        workspace.into_store(found)
        for pin in found:
            self.done += pin.size
            del self.files[pin]

    def _take_from(self, folder: Path) -> None:
        there = {clean_name(path.name): path for path in folder.rglob("*") if path.suffix in (".whl", ".deb")}
        for pin in list(self.files):
            path = there.get(pin.file) or there.get(_without_epoch(pin))
            if path is not None:
                with workspace.scratch() as temporary:
                    # A copy: the file is the user's, and adding changes its mode.
                    self._take({pin: Path(shutil.copyfile(path, temporary / pin.file))})

    def _check_space(self) -> None:
        need = sum(pin.size for pin in self.files) + max(pin.size for pin in self.files)
        for place in (workspace.folder(), Path(store.STORE)):
            disk.need(place, need)

    def _download(self) -> None:
        """Download all of `files`. A wrong or absent one does not stop the others; it is raised last."""
        errors: list[SparkserveError] = []
        with bar("Fetch pins") as progress, ThreadPoolExecutor(WORKERS) as pool:
            task = progress.add_task("", total=self.total, completed=self.done)
            waiting = {pool.submit(self._one, batch) for batch in batches(self.files)}
            try:
                while waiting:
                    finished, waiting = wait(waiting, timeout=0.2)
                    for future in [f for f in finished if not f.cancelled()]:
                        got, failed = future.result()
                        self.done += got
                        errors += failed
                    if any(
                        not (error.id == "PIN.HASH" or isinstance(error, pip.AbsentError)) for error in errors
                    ):
                        # No network or no space: the rest would fail for the same cause, but slowly.
                        for future in waiting:
                            future.cancel()
                    progress.update(task, completed=min(self.total, self.done + workspace.size()))
                progress.update(task, completed=self.done)
            except BaseException:
                processes.stop()
                pool.shutdown(cancel_futures=True)
                raise
        if errors:
            # Of many the first: they mostly have one cause.
            raise errors[0]

    def _one(self, batch: list[Pin]) -> tuple[int, list[SparkserveError]]:
        """Download a batch and add it; return the bytes and what failed.

        When an index lacks one wheel of a batch, they are tried one by one, so that only that one is missing.
        """
        target = self.files[batch[0]]
        try:
            with workspace.scratch() as base:
                if batch[0].kind == "deb":
                    found = apt.opened(target, self.mirror).download(batch, base)
                else:
                    exact = [f"{pin.name}=={pin.version}" for pin in batch]
                    found = pip.download(target, exact, base, pip.places(self.given))
                workspace.into_store(_matched(batch, found))
        except SparkserveError as error:
            if not isinstance(error, pip.AbsentError) or len(batch) == 1:
                return 0, [error]
        else:
            return sum(pin.size for pin in batch), []
        results = [self._one([pin]) for pin in batch]
        return sum(got for got, _ in results), [error for _, failed in results for error in failed]


def _matched(batch: Sequence[Pin], files: Sequence[Path]) -> dict[Pin, Path]:
    by_name = {clean_name(file.name): file for file in files}
    for pin in batch:
        if pin.file not in by_name:
            raise SparkserveError(
                "PIN.FETCH",
                expected=pin.file,
                found=f"other files instead: {', '.join(sorted(by_name))}",
                where=f"{pin.kind} {pin.name} {pin.version}",
                do="Name a folder that has the file with --from, or run ./sparkserve pins lock.",
            )
    return {pin: by_name[pin.file] for pin in batch}


def _without_epoch(pin: Pin) -> str:
    """The name that a mirror's pool gives a deb."""
    epoch, colon, _ = pin.version.partition(":")
    return pin.file.replace(f"_{epoch}-", "_", 1) if colon else pin.file
