"""`pins fetch`: brings into the store what it lacks of the pin lists, several downloads at a time."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.output import console
from sparkserve.pins import apt, model, processes, store, wheels, workspace
from sparkserve.pins.model import Pin, PinList, Target, clean_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKERS = 3
# Small wheels share one pip, which takes about a second to start; a large one has a pip of its own.
_BATCH_BYTES = 24 << 20
_BATCH_FILES = 12
_TAIL = 1500


def fetch(profiles: Sequence[str], given: Sequence[str], mirror: str | None) -> int:
    """Fetch all pins of `profiles` that the store lacks; return the bytes that came in.

    `given`: folders and indexes to look in first. `mirror`: a Debian mirror in place of the machine's own.
    Raises `PIN.FETCH`, `PIN.HASH`, `HOST.DISK`; what was whole by then is in the store and is not fetched again.
    """
    lists = [model.load(name) for name in profiles]
    every = {pin.path for each in lists for pin in each.pins}
    lacking = store.missing(every)
    total = 0
    if lacking:
        with workspace.locked():
            lacking = store.missing(lacking)
            total = _Fetch(lists, lacking, given, mirror).run()
    store.keep(every)
    return total


class _Fetch:
    def __init__(self, lists: Sequence[PinList], lacking: set[str], given: Sequence[str], mirror: str | None):
        unique = {pin.path: (each.target, pin) for each in lists for pin in each.pins if pin.path in lacking}
        self.files = {pin: target for target, pin in unique.values() if pin.kind != "tree"}
        self.trees = {pin: each for each in lists for pin in each.pins if pin.path in lacking and pin.kind == "tree"}
        self.given, self.mirror = given, mirror
        self.done = 0

    def run(self) -> int:
        total = sum(pin.size for pin in self.files)
        self._take(workspace.left_over(self.files))
        for folder in (place for place in self.given if "://" not in place):
            self._take_from(Path(folder))
        self._check_space()
        errors = self._download(total)
        if errors:
            # One sentence tells more than thirty that have the same cause.
            raise errors[0]
        for pin, each in self.trees.items():
            deb = next(p for p in each.pins if p.file == pin.source)
            workspace.plant(pin, Path(deb.path))
        return total

    def _take(self, found: dict[Pin, Path]) -> None:
        workspace.into_store(found)
        for pin in found:
            self.done += pin.size
            del self.files[pin]

    def _take_from(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SparkserveError(
                "PIN.FETCH",
                expected="--from to name a folder or an index URL",
                found="no such folder",
                where=str(folder),
                do="Correct the path.",
            )
        there = {clean_name(path.name): path for path in folder.rglob("*") if path.suffix in (".whl", ".deb")}
        for pin in [p for p in self.files if p.file in there]:
            with tempfile.TemporaryDirectory(dir=workspace.folder()) as temporary:
                # A copy: the file is the user's, and adding changes its mode.
                copy = Path(temporary) / pin.file
                shutil.copyfile(there[pin.file], copy)
                self._take({pin: copy})

    def _check_space(self) -> None:
        need = sum(pin.size for pin in self.files) + max((pin.size for pin in self.files), default=0)
        for place in (workspace.folder(), Path(store.STORE)):
            free = shutil.disk_usage(place).free
            if free < need:
                raise store.disk_full(str(place), f"{free >> 20} MiB free of {need >> 20} MiB needed")

    def _download(self, total: int) -> list[SparkserveError]:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn("Fetch pins"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        errors: list[SparkserveError] = []
        with Progress(*columns, console=console) as progress, ThreadPoolExecutor(WORKERS) as pool:
            task = progress.add_task("", total=total, completed=self.done)
            waiting = {pool.submit(self._one, batch) for batch in self._batches()}
            try:
                while waiting:
                    finished, waiting = wait(waiting, timeout=0.2)
                    for future in finished:
                        got, error = future.result()
                        self.done += got
                        errors += [error] if error else []
                    progress.update(task, completed=min(total, self.done + workspace.size()))
                progress.update(task, completed=self.done)
            except BaseException:
                processes.stop()
                pool.shutdown(cancel_futures=True)
                raise
        return errors

    def _batches(self) -> Iterator[list[Pin]]:
        debs = [pin for pin in self.files if pin.kind == "deb"]
        for target in sorted({self.files[pin].debian for pin in debs}):
            yield [pin for pin in debs if self.files[pin].debian == target]
        batch: list[Pin] = []
        for pin in sorted((p for p in self.files if p.kind == "wheel"), key=lambda p: (-p.size, p.file)):
            full = sum(p.size for p in batch) + pin.size > _BATCH_BYTES or len(batch) == _BATCH_FILES
            if batch and (full or self.files[pin] != self.files[batch[0]]):
                yield batch
                batch = []
            batch.append(pin)
        if batch:
            yield batch

    def _one(self, batch: list[Pin]) -> tuple[int, SparkserveError | None]:
        """Download a batch and add it; one at a time when the batch as a whole fails, to lose only what is bad."""
        target = self.files[batch[0]]
        with tempfile.TemporaryDirectory(prefix="run-", dir=workspace.folder(), ignore_cleanup_errors=True) as base:
            try:
                if batch[0].kind == "deb":
                    by_name = apt.opened(target.debian, self.mirror).download(batch, Path(base))
                    found = {pin: by_name[pin.name] for pin in batch}
                else:
                    found = wheel_files(target, batch, Path(base), wheels.places(self.given))
                workspace.into_store(found)
            except SparkserveError as error:
                if error.id != "PIN.FETCH" or batch[0].kind == "deb" or len(batch) == 1:
                    return 0, error
            else:
                return sum(pin.size for pin in batch), None
        results = [self._one([pin]) for pin in batch]
        return sum(got for got, _ in results), next((error for _, error in results if error), None)


def wheel_files(target: Target, batch: list[Pin], base: Path, where: wheels.Places) -> dict[Pin, Path]:
    """Download the wheels of `batch` below `base`; return their files."""
    exact = [f"{pin.name}=={pin.version}" for pin in batch]
    got = {clean_name(file.name): file for file in download(target, exact, base, where)}
    for pin in batch:
        if pin.file not in got:
            raise SparkserveError(
                "PIN.FETCH",
                expected=pin.file,
                found=f"other files of that version: {', '.join(sorted(got))}",
                where=f"{pin.name}=={pin.version}",
                do="Name a folder that has the file with --from, or lock again.",
            )
    return {pin: got[pin.file] for pin in batch}


def download(target: Target, exact: Sequence[str], base: Path, where: wheels.Places) -> list[Path]:
    """Let pip download `exact` (name==version) for `target` below `base`. Raises `PIN.FETCH`, `HOST.DISK`."""
    # pip downloads into TMPDIR and moves at the end: below `base`, so that the progress is seen there.
    (base / "tmp").mkdir()
    argv = wheels.download_command(target, exact, base / "wheels", where)
    done = processes.run(argv, env={**os.environ, "TMPDIR": str(base / "tmp")})
    if done.returncode == 0:
        return sorted((base / "wheels").glob("*.whl"))
    absent = re.findall(r"No matching distribution found for (\S+)", done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr]
    do = wheels.local_build_hint(absent) or "Check the network, or name a folder or an index with --from."
    raise SparkserveError(
        "PIN.FETCH",
        expected="pip to download " + (", ".join(absent) or f"{len(exact)} wheels"),
        found="no index that has it" if absent else lines[-1][-_TAIL:],
        where=f"pip for Python {target.python}, glibc {target.glibc}",
        do=do,
    )
