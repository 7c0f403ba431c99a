"""Looks at a group from outside, five times a second: what it says of itself, and whether that can be true.

The truth is the machine's: which processes of which boot's engines live on which node, and what the test has
frozen or cut. Three things may never be seen:

- health 200 longer than `LOST_S` after a rank died, was stopped, frozen or cut off;
- engines of two boots at once;
- an engine that lives longer than `OUTLIVES_S` after its group has ended.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from endpoint import health
from group_fleet import HEAD, NODES
from nodes import INIT, RANK, processes

from sparkserve.engine import procfs
from sparkserve.local import cgroups

if TYPE_CHECKING:
    from sparkserve.engine.procfs import Process
    from sparkserve.local.names import Names

LOST_S = 10.0
# A token that had come out before is read up to so much later, on two cores that an engine's start fills.
SLACK_S = 1.0
OUTLIVES_S = 20.0
LOOK_S = 0.2
FIRST_PORT = 29500  # modules/group.nix; boots take turns with 100 ports
_PORT = re.compile(rb"--dist-init-addr\0[^\0]*:(\d+)\0")


class Rank(NamedTuple):
    """An engine on a node: its boot's port (None without bubblewrap), its processes, whether it can work."""

    port: int | None
    engine: tuple[Process, ...]
    able: bool


def rank(names: Names, node: str) -> Rank:
    """What runs on a node now."""
    port, engine, scheduler, stopped = None, [], False, False
    for process in processes(names, node, RANK):
        stat = procfs.look(process.pid)
        if stat is None or stat.state in "ZX" or is_supervisor(process):
            continue
        engine.append(process)
        scheduler = scheduler or stat.name.startswith("sglang::schedul")
        stopped = stopped or stat.state in "Tt"
        if port is None and (found := _PORT.search(_words(process.pid))):
            port = int(found[1])
    return Rank(port, tuple(engine), scheduler and not stopped)


def is_supervisor(process: Process) -> bool:
    return " rank run " in procfs.command_line(process.pid) or " rank gone " in procfs.command_line(
        process.pid
    )


def is_frozen(names: Names, node: str) -> bool:
    for each in cgroups.detect().hierarchies:
        folder = each.path / names.group / node
        with suppress(OSError):
            if each.has("freezer") and (folder / "freezer.state").read_text().strip() != "THAWED":
                return True
            if not each.options and (folder / "cgroup.freeze").read_text().strip() == "1":
                return True
    return False


class Watcher:
    """`cut` are the cables that the test has cut; `wrong` is what was seen and may not be."""

    def __init__(self, names: Names, port: int) -> None:
        self.cut: set[str] = set()
        self.wrong: list[str] = []
        self.health = 0
        self.bad_since: float | None = time.monotonic()
        self.boots: set[str] = set()
        self.served: set[str] = set()
        self.turned: list[tuple[str, float]] = []  # what made health turn, after how many seconds
        self.looks = 0
        self._names = names
        self._port = port
        self._hit: tuple[str, float] | None = None
        self._asked: list[tuple[float, int]] = []
        self._over: dict[tuple[str, int], float] = {}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._ask, self._look_on)]

    def __enter__(self) -> Watcher:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def hit(self, what: str) -> None:
        """Something happened now that must turn health, if it was good."""
        if self.health == 200 and self._hit is None:
            self._hit = (what, time.monotonic())

    def mended(self) -> None:
        """What happened is over, perhaps before it could show: a later turn is of something else."""
        self._hit = None

    def _ask(self) -> None:
        while not self._stop.wait(LOOK_S):
            begin = time.monotonic()
            code = health(self._port)
            self.health = code
            hit = self._hit
            if hit is not None and code == 503:  # not 0: then the front itself is gone
                self.turned.append((hit[0], time.monotonic() - hit[1]))
                self._hit = None
            self._asked.append((begin, code))

    def _look_on(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:  # a thread that dies would see nothing wrong for ever
                self.wrong.append(f"the watcher failed: {error!r}")
                raise

    def _look(self) -> None:
        asked, self._asked = self._asked, []
        ranks = {node: rank(self._names, node) for node in NODES}
        frozen = {node for node in NODES if is_frozen(self._names, node)}
        group = self._group()
        now = time.monotonic()
        self.looks += 1
        ports = {each.port for each in ranks.values()}
        able = all(each.able for each in ranks.values()) and len(ports) == 1 and None not in ports
        if able and not frozen and not self.cut:
            self.bad_since = None
        elif self.bad_since is None:
            self.bad_since = now
        # Judged only now, after a look that began later than the answer came.
        for begin, code in asked:
            if code == 200 and self.bad_since is not None and begin - self.bad_since > LOST_S + SLACK_S:
                told = f"health 200, {begin - self.bad_since:.1f} s after not all ranks could work any more"
                self.wrong.append(f"{told}: {ranks}, frozen {frozen}, cut {self.cut}, group {group}")
        if len(ports - {None}) > 1:
            self.wrong.append(f"engines of two boots: {ranks}")
        self._outlived(ranks, frozen, group, now)

    def _outlived(self, ranks: dict[str, Rank], frozen: set[str], group: dict[str, str], now: float) -> None:
        boot = group.get("boot", "")
        if group.get("state") in ("starting", "up", "draining") and boot:
            self.boots.add(boot)
            if group["state"] == "up":
                self.served.add(boot)
            current = FIRST_PORT + int(boot.partition("-")[0]) % 100
        else:
            current = -1
        over = {}
        for node, each in ranks.items():
            # What is frozen cannot die, and a frozen head cannot say that a group has ended.
            if each.port is not None and each.port != current and not frozen & {node, HEAD}:
                since = over[node, each.port] = self._over.get((node, each.port), now)
                if now - since > OUTLIVES_S:
                    told = f"{node}'s engine lives {now - since:.0f} s after its group ended: {each}, {group}"
                    self.wrong.append(told)
                    over[node, each.port] = now
        self._over = over

    def _group(self) -> dict[str, str]:
        """What the head's controller said last; nothing while the head is off."""
        for process in processes(self._names, HEAD, INIT):
            try:
                text = Path(f"/proc/{process.pid}/root/run/sparkserve/group.json").read_text()
                found: dict[str, str] = json.loads(text)
            except (OSError, ValueError):
                continue
            return found
        return {}


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
