"""The cgroups of a laptop fleet: one for each node, in every hierarchy that its systemd manages.

A node's systemd must get a cgroup of its own in each of them, or it makes its slices in the machine's.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sparkserve.errors import SparkserveError

# The controllers that systemd manages. cpuset is not one in version 1, and a new cpuset takes no process.
_MANAGED = {"memory", "cpu", "cpuacct", "devices", "freezer", "blkio", "pids"}
_V2 = ("memory", "pids", "cpu", "io")
# Processes beside the nodes: starters and the keeper. In version 2 a cgroup has processes or children, not
# both.
BESIDE = "beside"
_WAIT_S = 10.0


class Hierarchy(NamedTuple):
    """A mounted cgroup hierarchy. `options` are those of its mount; empty for version 2."""

    path: Path
    options: str

    def has(self, controller: str) -> bool:
        """Whether this is the version 1 hierarchy of `controller`."""
        return controller in self.options.split(",")


class Cgroups(NamedTuple):
    """The hierarchies of this machine that a node gets a part of."""

    hierarchies: tuple[Hierarchy, ...]

    @property
    def unified(self) -> bool:
        """Whether the machine has version 2 only, so that it limits memory."""
        return all(not each.options for each in self.hierarchies)

    def folders(self, group: str) -> list[Path]:
        """The cgroup `group` in every hierarchy."""
        return [each.path / group for each in self.hierarchies]

    def make(self, group: str, node: str, memory_mib: int) -> None:
        """Make a node's cgroup, and the one for processes beside it. Raises `HOST.SYSTEM`."""
        for each in self.hierarchies:
            try:
                if self.unified:
                    (each.path / group).mkdir(exist_ok=True)
                    for folder in (each.path, each.path / group):
                        _enable(folder)
                for name in (node, BESIDE):
                    (each.path / group / name).mkdir(parents=True, exist_ok=True)
                folder = each.path / group / node
                limit = folder / ("memory.max" if self.unified else "memory.limit_in_bytes")
                if self.unified or each.has("memory"):
                    limit.write_text(str(memory_mib << 20))
            except OSError as error:
                raise _wrong("to make a cgroup for each node", str(error)) from None

    def join(self, group: str, leaf: str, pid: int) -> None:
        """Put a process into a cgroup. Nothing happens when it is gone."""
        for folder in self.folders(f"{group}/{leaf}"):
            with suppress(OSError):
                (folder / "cgroup.procs").write_text(str(pid))

    def freeze(self, group: str, node: str, *, frozen: bool) -> None:
        """Stop or go on with every process of a node; returns when it has happened. Nothing for no cgroup."""
        for each in self.hierarchies:
            folder = each.path / group / node
            if self.unified:
                _until(folder / "cgroup.freeze", str(int(frozen)), "cgroup.events", f"frozen {int(frozen)}")
            elif each.has("freezer"):
                state = "FROZEN" if frozen else "THAWED"
                _until(folder / "freezer.state", state, "freezer.state", state)

    def pids(self, group: str) -> set[int]:
        """All processes in the cgroup `group` and below."""
        found = set()
        for folder in self.folders(group):
            for procs in folder.rglob("cgroup.procs"):
                with suppress(OSError):
                    found |= {int(line) for line in procs.read_text().split()}
        return found

    def remove(self, group: str) -> None:
        """Remove the cgroup `group` and all below it, whose processes are dead. Raises `HOST.SYSTEM`."""
        deadline = time.monotonic() + _WAIT_S
        while left := [folder for folder in self.folders(group) if not _removed(folder)]:
            if time.monotonic() > deadline:
                found = f"{left[0]}, with the processes {sorted(self.pids(group))}"
                raise _wrong("cgroups without processes to be removed", found)
            time.sleep(0.02)


def detect() -> Cgroups:
    """The hierarchies of this machine. Raises `HOST.SYSTEM` when none of them limits memory."""
    found = parse(Path("/proc/self/mountinfo").read_text())
    v1 = [each for each in found if each.options]
    if v1:
        if any(each.has("memory") for each in v1) and any(each.has("name=systemd") for each in v1):
            return Cgroups(tuple(found))
        raise _wrong("the hierarchies memory and name=systemd", ", ".join(each.options for each in v1))
    controllers = (found[0].path / "cgroup.controllers").read_text().split() if found else []
    if "memory" not in controllers:
        raise _wrong("cgroups that limit memory", f"the controllers {', '.join(controllers) or 'none'}")
    return Cgroups(tuple(found))


def parse(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies in the text of /proc/PID/mountinfo that matter here, each once."""
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        path = Path(before.split()[4].encode().decode("unicode_escape"))
        chosen = [name for name in options.split(",") if name in _MANAGED or name == "name=systemd"]
        if kind == "cgroup2" or (kind == "cgroup" and chosen):
            text = "" if kind == "cgroup2" else ",".join(chosen)
            found.setdefault(text, Hierarchy(path, text))
    return list(found.values())


def _enable(folder: Path) -> None:
    there = (folder / "cgroup.controllers").read_text().split()
    wanted = " ".join(f"+{name}" for name in _V2 if name in there)
    (folder / "cgroup.subtree_control").write_text(wanted)


def _until(file: Path, order: str, told_in: str, done: str) -> None:
    """Write an order and wait until the file beside it tells that it is done."""
    deadline = time.monotonic() + _WAIT_S
    with suppress(FileNotFoundError):
        file.write_text(order)
        while done not in file.with_name(told_in).read_text() and time.monotonic() < deadline:
            time.sleep(0.005)


def _removed(folder: Path) -> bool:
    if not folder.exists():
        return True
    for below, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(below).rmdir()
    return not folder.exists()


def _wrong(expected: str, found: str) -> SparkserveError:
    return SparkserveError(
        "HOST.SYSTEM",
        expected=expected,
        found=found,
        where="/sys/fs/cgroup",
        do="Run it on the machine itself, or in a container that may manage its cgroups.",
    )
