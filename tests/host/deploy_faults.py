"""One fault in one deployment, drawn by a seed: what, on which node, when, and for how long."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, NamedTuple

import events
from group_fleet import HEAD, NODES
from watch import Watcher

if TYPE_CHECKING:
    from pathlib import Path

    from events import Undo
    from running import Running

    from sparkserve.local.record import Fleet

DEPLOYER = "deployer"  # kill -9 of it; the others are kinds of events.py
KINDS = (DEPLOYER, "sshd", "management", "disk", "engine", "freeze", "power cut")
# A step of the deployer, and up to how many seconds after its begin. The copy begins before its journal does.
COPY = "copy"
MOMENTS = {COPY: 2.0, "begun": 2.0, "stop": 6.0, "activate": 6.0, "start": 30.0, "prove": 5.0, "decide": 2.0}
HOLD_S = 2.0, 25.0
POLL_S = 0.05


class Fault(NamedTuple):
    """`after_s` after the begin of the step `moment`; undone after `hold_s`, None: at the deployer's end.

    `kill`: SIGKILL, else SIGSTOP, of what gets a signal. `number` picks a process, or MiB that stay free.
    """

    kind: str
    node: str
    moment: str
    after_s: float
    hold_s: float | None
    kill: bool
    number: int


def draw(seed: int, kind: str | None) -> Fault:
    """The fault of a seed; with `kind`, of that kind."""
    chance = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    drawn, node = chance.choice(KINDS), chance.choice(NODES)
    moment, part = chance.choice(list(MOMENTS)), chance.random()
    hold = None if chance.random() < 1 / 3 else round(chance.uniform(*HOLD_S), 1)
    kill, number = chance.random() < 0.5, chance.randrange(1000)
    return Fault(kind or drawn, node, moment, round(part * MOMENTS[moment], 1), hold, kill, number)


def come_to(fault: Fault, deployer: Running, folder: Path, before: int) -> str:
    """Wait for the fault's moment; in which step the deployer is then, or that it has ended.

    `folder` has its journals, those up to number `before` of other deployments.
    """
    since = None
    while since is None or time.monotonic() - since < fault.after_s:
        if deployer.child.poll() is not None:
            return "after its end"
        if since is None and fault.moment in steps(deployer, folder, before):
            since = time.monotonic()
        time.sleep(POLL_S)
    return steps(deployer, folder, before)[-1]


def steps(deployer: Running, folder: Path, before: int) -> list[str]:
    """The steps that the deployer has begun."""
    found = [COPY] if deployer.said("Ask the nodes") else []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if int(path.name.partition("-")[0]) > before:
            # Not by `journals`, which also brings it onto the disk.
            for line in path.read_text().split("\n")[:-1]:
                record = json.loads(line.partition(" ")[2])
                found.append(record["data"]["step"] if record["kind"] == "noted" else record["kind"])
    return found


def happen(fault: Fault, fleet: Fleet, deployer: Running) -> tuple[str, Undo | None]:
    """Do it; what was done in words, and how to undo it."""
    if fault.kind == DEPLOYER:
        deployer.child.kill()
        return "SIGKILL of the deployer", None
    event = events.Event(fault.kind, fault.node, HEAD, fault.number, fault.kill, 0, 0.0)
    return events.happen(event, fleet, Watcher(fleet.names, 0))  # which nobody starts
