"""Random accidents to all parts of a real group, by a seed: no health is claimed that is not, nothing stays.

    SPARKSERVE_SEED=7,8 SPARKSERVE_EVENTS=50 pytest tests/host/fleet/test_random.py -s

20 events take 4 min on two cores; docs/results/faults.md has longer runs. What may never be seen: watch.py.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import events
import pytest
from endpoint import ask
from group_fleet import FLEET, HEAD, inside
from nodes import attempt
from running import Running
from watch import LOST_S, SLACK_S, Watcher

from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.local import leftovers, record, triangle

if TYPE_CHECKING:
    from engine_copy import Copy
    from events import Event, Undo

    from sparkserve.local.names import Names

SEEDS = [int(each) for each in os.environ.get("SPARKSERVE_SEED", "3").split(",")]
EVENTS = int(os.environ.get("SPARKSERVE_EVENTS", "20"))
# An `up` that meets accidents gives up by itself: 90 s for a boot, three of them, and 60 s without any.
UP_S = 600.0
DOWN_S = 240.0


class Storm:
    """The fleet in `copy`, while things happen to it."""

    def __init__(self, copy: Copy, watcher: Watcher, mine: Names) -> None:
        self.copy, self.watcher, self.mine = copy, watcher, mine
        self.up: Running | None = None  # one that runs beside
        self.undo: list[tuple[int, Undo]] = []  # with the number of events that it waits for
        self.begin = time.monotonic()

    def tell(self, text: str) -> None:
        bad = self.watcher.bad_since
        words = "able" if bad is None else f"unable for {time.monotonic() - bad:.1f} s"
        now = time.monotonic() - self.begin
        sys.stderr.write(f"{now:7.1f} s  health {self.watcher.health:3d}, {words:20s} {text}\n")

    def check(self) -> None:
        assert not self.watcher.wrong, "\n".join(self.watcher.wrong[:5]) + "\n" + self.journal()

    def journal(self) -> str:
        """What the head's controller said lately, if it can be asked."""
        fleet = record.load(self.mine)
        try:
            return attempt(fleet, HEAD, "journalctl -u sparkserve-rank -n 60").stdout if fleet else ""
        except subprocess.TimeoutExpired:
            return ""

    def happen(self, number: int, event: Event) -> None:
        self.mend(due=True)
        match event.kind:
            case "settle":
                self.settle()
            case "down":
                self.down()
                self.up = self.up or Running(self.copy, "up")
            case "up":
                self.up = self.up or Running(self.copy, "up")
            case "kill up":
                if self.up is not None:
                    self.up.child.kill()
                    self.up.end(10)
                    self.up = None
            case "status":
                self.status()
            case _:
                self.tell(f"{number}: {self.accident(event)}")
                return
        self.tell(f"{number}: {event.kind}")

    def accident(self, event: Event) -> str:
        fleet = record.load(self.mine)
        if fleet is None or (event.kind in events.ALONE and self.busy()):
            return f"not now: {event.kind}"
        try:
            told, undo = events.happen(event, fleet, self.watcher)
        except (SparkserveError, OSError, subprocess.TimeoutExpired) as error:
            return f"not done: {event.kind} of {event.node}: {error}"
        if undo is not None:
            self.undo.append((event.hold, undo))
        return told

    def busy(self) -> bool:
        """Whether the `up` beside us still runs; one that has ended has done so in order."""
        if self.up is not None and self.up.child.poll() is not None:
            self.ended("up", self.up, UP_S)
            self.up = None
        if self.up is None and not self.mine.record.exists():
            # An `up` from nothing that failed has taken all down, and what was broken with it.
            self.undo.clear()
            self.watcher.cut.clear()
        return self.up is not None

    def ended(self, name: str, command: Running, seconds: float) -> tuple[int, str]:
        """Its end, which is in time and without a traceback, whatever happened meanwhile."""
        code, out = command.end(seconds)
        assert code in (0, *EXIT_CODES.values()) and not command.said("Traceback"), (
            name,
            code,
            command.lines,
        )
        if code:
            self.tell(f"{name} ended with {code}: {command.lines[-1].strip()[:200] if command.lines else ''}")
        return code, out

    def mend(self, *, due: bool = False) -> None:
        """Undo what has lasted long enough, or everything. Power is not switched beside an `up`."""
        busy, later = self.busy(), []
        # Power first: nothing else can be undone on a node that is off.
        for hold, undo in sorted(self.undo, key=lambda each: not each[1][0].startswith("power on")):
            if due and (hold > 0 or (busy and undo[0].startswith(("power", "plug")))):
                later.append((hold - 1, undo))
                continue
            self.watcher.mended()
            try:
                undo[1]()
                self.tell(f"      {undo[0]}")
            except (SparkserveError, OSError) as error:
                self.tell(f"      not undone: {undo[0]}: {str(error)[:200]}")
        self.undo = later

    def settle(self) -> None:
        """With everything mended, `up` makes the group serve."""
        if self.up is not None:
            self.ended("up", self.up, UP_S)
            self.up = None
        self.busy()
        self.mend()
        up = Running(self.copy, "up")
        code, _ = self.ended("up", up, UP_S)
        assert code == 0, "\n".join([*up.lines, self.journal()])
        assert "Paris" in ask(self.copy.port, "What is the capital of France?")

    def down(self) -> None:
        down = Running(self.copy, "down")
        assert self.ended("down", down, UP_S + DOWN_S)[0] == 0, down.lines
        if not self.busy():  # else it had the lock before that `up` came to it
            assert leftovers.find(self.mine) == []

    def status(self) -> None:
        begin, bad = time.monotonic(), self.watcher.bad_since
        status = Running(self.copy, "status")
        code, out = self.ended("status", status, 60)
        if code == 0:
            late = bad is not None and self.watcher.bad_since == bad and begin - bad > LOST_S + SLACK_S
            assert not late, f"status says that all is well: {out}"


@pytest.mark.parametrize("seed", SEEDS)
def test_random_accidents(triangle_copy: Copy, seed: int) -> None:
    with inside(triangle_copy):
        mine = triangle.names(FLEET)
        try:
            with Watcher(mine, triangle_copy.port) as watcher:
                run(Storm(triangle_copy, watcher, mine), seed)
        finally:
            triangle.down(FLEET)
        assert leftovers.find(mine) == []


def run(storm: Storm, seed: int) -> None:
    drawn = events.draw(seed, EVENTS)
    storm.tell(f"seed {seed}, {len(drawn)} events, load {os.getloadavg()[0]:.1f}")
    storm.settle()
    for number, event in enumerate(drawn, 1):
        storm.happen(number, event)
        time.sleep(event.wait)
        storm.check()
    storm.settle()
    storm.down()
    assert storm.up is None
    storm.check()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", storm.copy.port))
    watcher = storm.watcher
    turned = [seconds for _, seconds in watcher.turned]
    for what, seconds in watcher.turned:
        storm.tell(f"health turned {seconds:.1f} s after {what}")
    if turned:
        storm.tell(f"health turned: n {len(turned)}, median {median(turned):.1f} s, max {max(turned):.1f} s")
    told = f"{len(watcher.boots)} boots, {len(watcher.served)} of them up, {watcher.looks} looks"
    storm.tell(f"seed {seed}: {len(drawn)} events, {told}, load {os.getloadavg()[0]:.1f}")
    assert watcher.looks > 100
