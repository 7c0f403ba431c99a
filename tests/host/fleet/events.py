"""What can happen to parts of a group, drawn by a seed: every draw is made before the first event."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING, NamedTuple

import nodes
from group_fleet import HEAD, NODES
from watch import is_supervisor, rank

from sparkserve.local import faults, keeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from watch import Watcher

    from sparkserve.engine.procfs import Process
    from sparkserve.local.record import Fleet

# How often each kind is drawn, of the sum. The first group needs nodes, the second is done by commands.
WEIGHTS = {
    **{"engine": 9, "supervisor": 5, "front": 4, "sshd": 4, "freeze": 5, "disk": 3, "keeper": 1},
    **{"power cut": 4, "power cycle": 3, "cable": 4, "management": 4},
    **{"group stop": 2, "group start": 2},
    **{"up": 3, "kill up": 2, "down": 2, "status": 3, "settle": 15},
}
# What plugs or switches: not while an `up` does that too.
ALONE = ("power cut", "power cycle", "cable", "management")


class Event(NamedTuple):
    """`number` picks a process, `kill` a signal; what can be undone is undone after `hold` more events."""

    kind: str
    node: str
    other: str
    number: int
    kill: bool
    hold: int
    wait: float


def draw(seed: int, count: int) -> list[Event]:
    """The events of a seed."""
    chance = random.Random(seed)  # noqa: S311 - a seed that can be repeated
    kinds = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
    found = []
    for kind in kinds:
        node, other = chance.sample(NODES, 2)
        wait = chance.choice((0.0, chance.uniform(0, 8)))
        number, kill, hold = chance.randrange(1000), chance.random() < 0.5, chance.randrange(1, 4)
        found.append(Event(kind, node, other, number, kill, hold, wait))
    return found


Undo = tuple[str, "Callable[[], object]"]


def happen(event: Event, fleet: Fleet, watcher: Watcher) -> tuple[str, Undo | None]:
    """Do it; what was done in words, and how to undo it. Raises `SparkserveError` when it cannot be done."""
    node, other = event.node, event.other
    match event.kind:
        case "engine":
            running = rank(fleet.names, node).engine
            chosen = [running[event.number % len(running)]] if running else []
            return _signal(event, f"a process of {node}'s engine", chosen, watcher)
        case "supervisor":
            found = [p for p in nodes.processes(fleet.names, node, nodes.RANK) if is_supervisor(p)]
            return _signal(event, f"{node}'s supervisor", found, watcher if event.kill else None)
        case "front":
            return _signal(event, "the front", nodes.processes(fleet.names, HEAD, nodes.FRONT), None)
        case "sshd":
            return _signal(event, f"{node}'s sshd", nodes.processes(fleet.names, node, nodes.SSHD), None)
        case "freeze":
            watcher.hit(f"freeze {node}")
            faults.freeze(fleet, node)
            return f"freeze {node}", (f"thaw {node}", lambda: faults.thaw(fleet, node))
        case "disk":
            faults.fill_disk(fleet, node, leave_mib=event.number % 9)
            return f"fill {node}'s disk", (f"free {node}'s disk", lambda: faults.free_disk(fleet, node))
        case "keeper":
            guard = keeper.find(fleet.names)
            return _signal(event._replace(kill=True), "the keeper", [guard] if guard else [], None)
        case "power cut":
            watcher.hit(f"power cut of {node}")
            faults.power_cut(fleet, node)
            return f"power cut of {node}", (f"power on {node}", lambda: faults.power_on(fleet, node))
        case "power cycle":
            watcher.hit(f"power cycle of {node}")
            faults.power_cycle(fleet, node)
            return f"power cycle of {node}", None
        case "cable":
            stripe = event.number % 3
            which = None if stripe == 2 else stripe
            if which is None:
                watcher.hit(f"cut {node} to {other}")
            faults.cut_link(fleet, node, other, which)
            cable = f"{min(node, other)} to {max(node, other)}"
            if which is None:
                watcher.cut.add(cable)

            def plug() -> None:
                watcher.cut.discard(cable)
                faults.restore_link(fleet, node, other)

            return f"cut {cable}, stripe {'all' if which is None else which}", (f"plug in {cable}", plug)
        case "management":
            faults.cut_management(fleet, node)
            undo = (f"plug in {node}'s management", lambda: faults.restore_management(fleet, node))
            return f"cut {node}'s management", undo
        case "group stop" | "group start":
            what = event.kind.removeprefix("group ")
            profile = "/nix/var/nix/profiles/sparkserve"
            done = nodes.attempt(
                fleet, HEAD, f"timeout 20 {profile}/bin/sparkserve rank ask {profile} {what}"
            )
            return f"{event.kind}: exit code {done.returncode}", None
    raise AssertionError(event)


def _signal(
    event: Event, whose: str, found: list[Process], watcher: Watcher | None
) -> tuple[str, Undo | None]:
    if not found:
        return f"nothing to signal: {whose}", None
    number = signal.SIGKILL if event.kill else signal.SIGSTOP
    if watcher is not None:
        watcher.hit(f"{number.name} of {whose}")
    for process in found:
        process.send(number)
    if event.kill:
        return f"SIGKILL of {whose}", None

    def go_on() -> None:
        for process in found:
            process.send(signal.SIGCONT)

    return f"SIGSTOP of {whose}", (f"SIGCONT of {whose}", go_on)
