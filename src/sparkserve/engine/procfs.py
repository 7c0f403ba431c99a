"""Processes as /proc shows them: identity that survives a reused pid, descent, memory."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process: pid, and its start in clock ticks after boot. A reused pid has another start."""

    pid: int
    start: int

    def alive(self) -> bool:
        """Whether this very process still runs. A zombie counts as gone: it holds nothing."""
        stat = _stat(self.pid)
        return stat is not None and stat.start == self.start and stat.state not in "ZX"

    def send(self, number: int) -> None:
        """Send a signal, never to another process that got the same pid. Nothing happens when it is gone."""
        with suppress(ProcessLookupError):
            fd = os.pidfd_open(self.pid)
            try:
                # The check comes after the open: from here on the descriptor cannot change its process.
                if self.alive():
                    signal.pidfd_send_signal(fd, number)
            finally:
                os.close(fd)

    def wait(self, seconds: float) -> bool:
        """Wait until it is gone, at most `seconds`. True when it is gone."""
        try:
            fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            stat = _stat(self.pid)
            if stat is None or stat.start != self.start:
                return True
            # Not alive(): a first thread is a zombie as soon as it ends, but the process may have others,
            # which still hold its files. The descriptor waits for all of them.
            return bool(select.select([fd], [], [], max(0.0, seconds))[0])
        finally:
            os.close(fd)


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that matter here. `start` is in clock ticks after boot."""

    name: str
    state: str
    parent: int
    start: int


def find(pid: int) -> Process | None:
    """The process that has `pid` now."""
    stat = _stat(pid)
    return None if stat is None else Process(pid, stat.start)


def look(pid: int) -> Stat | None:
    """What `pid` is and does now; None when there is no such process."""
    return _stat(pid)


def children(pid: int) -> list[Process]:
    """The direct children of `pid`, oldest first."""
    found = [Process(child, stat.start) for child, stat in _all().items() if stat.parent == pid]
    return sorted(found, key=lambda process: (process.start, process.pid))


def tree(pid: int) -> list[int]:
    """`pid` and everything below it. For PID 1 of a pid namespace that is the whole namespace."""
    below: dict[int, list[int]] = {}
    for child, stat in _all().items():
        below.setdefault(stat.parent, []).append(child)
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return found


def pss_bytes(processes: list[int]) -> int | None:
    """Proportional set size of `processes` together, in bytes; None when the kernel lets us read none."""
    total, readable = 0, False
    for pid in processes:
        with suppress(OSError):
            for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    readable = True
    return total if readable else None


def writers(path: Path) -> list[Process]:
    """The first processes of pid namespaces below ours whose stdout is the file `path`."""
    with suppress(FileNotFoundError):
        wanted = path.stat()
        return [process for pid in pids() if _first(pid) and _writes(pid, wanted) and (process := find(pid))]
    return []


def pids() -> list[int]:
    """All processes that there are now."""
    return [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]  # noqa: PTH208 - names only, thousands


def command_line(pid: int) -> str:
    """Program and arguments of `pid`, empty when it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return ""


def boot_id() -> str:
    """The kernel's id of this boot: starts are counted from boot, so they mean nothing in another one."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def _first(pid: int) -> bool:
    with suppress(OSError):
        status = (PROC / str(pid) / "status").read_text(errors="replace")
        # The pid in each namespace, from ours inwards.
        numbers = status.partition("\nNSpid:")[2].partition("\n")[0].split()
        return len(numbers) > 1 and numbers[-1] == "1"
    return False


def _writes(pid: int, wanted: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat((PROC / str(pid) / "fd/1").stat(), wanted)
    return False


def _stat(pid: int) -> Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses, and may itself hold spaces and parentheses.
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    return Stat(head.partition("(")[2], fields[0], int(fields[1]), int(fields[19]))


def _all() -> dict[int, Stat]:
    return {pid: stat for pid in pids() if (stat := _stat(pid)) is not None}
