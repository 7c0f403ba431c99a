"""Fleets on this machine, of one node or of several: what the commands for either ask, in one form.

`up` goes by what the fleet's files say, the others by what is there: files may have changed, or be gone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from sparkserve import checkout, disk
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, plans
from sparkserve.local import lock
from sparkserve.terminal import phase

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from sparkserve.plan import Plan
Part = Literal["engine", "supervisor", "front"]

# What a state means and what to do about it.
ADVICE = {
    "stopped": "Start it with: ./sparkserve up.",
    "starting": "Wait until its ./sparkserve up is done.",
    "abandoned": "The up that waited for its first answer is gone. ./sparkserve up waits on.",
    "silent": "It was ready and answers no more. ./sparkserve up replaces it; see ./sparkserve logs.",
    "dead": "It ended by itself: see ./sparkserve logs. ./sparkserve up cleans up and starts again.",
    "off": "./sparkserve up powers it on.",
    "unreachable": "It is on and does not answer over ssh.",
    "lost": "It is not part of the group. ./sparkserve up brings the group back.",
    "proving": "It is up and its first token is awaited: seconds.",
    "draining": "It lets requests end and stops.",
    "down": "Its group does not run. ./sparkserve up starts it; see ./sparkserve logs.",
}


def advice(state: str, fleet: str) -> str:
    """What to do about a node of `fleet` in this state; nothing when it is ready."""
    return re.sub(r"\./sparkserve (\w+)", lambda found: command(found[1], fleet), ADVICE.get(state, ""))


class Up(NamedTuple):
    """What `up` did: where the model is served, whether it was before, the seconds of each phase.

    `pid` is the engine's on this machine, None when it runs on nodes of its own. `keyed`: it asks for a key.
    """

    model: str
    endpoint: str
    fleet_id: str
    already: bool
    pid: int | None
    seconds: dict[str, float]
    keyed: bool = False


class Serving(NamedTuple):
    """Who answers for a fleet: `state` is `ready` or a key of `ADVICE`, `reason` why, if anybody knows.

    `answered` notes the seconds of an answer. Requests must show a key of `key_file`, if there is one.
    """

    state: str
    reason: str
    endpoint: str
    model: str
    answered: Callable[[float], object] = lambda seconds: None
    key_file: Path | None = None


class There(Protocol):
    """A fleet as it is on this machine: engines, nodes, or nothing but old logs."""

    def take_down(self) -> bool:
        """Stop it; False when nothing ran. The caller holds the fleet's lock."""
        ...

    def report(self) -> list[dict[str, Any]]:
        """Each node, as `status --json` prints it."""
        ...

    def serving(self) -> Serving:
        """Who answers for it."""
        ...

    def plan(self) -> Plan:
        """The plan that the head runs by, whatever the fleet's files say now. Raises `ENGINE.STATE`."""
        ...

    def logs(self, lines: int, *, follow: bool, part: Part, node: str | None) -> Generator[str, None, None]:
        """The last lines of each node's newest log, each with the node's name when there are several.

        `follow` goes on with new ones, over new starts, until nobody reads stdout any more.
        """
        ...


def bring_up(fleet: str) -> Up:
    """Make `fleet` serve what its files say. Raises any error of the phases."""
    from sparkserve.local import several, single

    with phase("Evaluate the plan"):
        found = plans.load(fleet)
        plans.require_packages(found[0])
    return single.bring_up(found[0]) if len(found) == 1 else several.bring_up(found)


def take_down(fleet: str) -> bool:
    """Stop `fleet`, also one whose files are gone; False when there was nothing. Raises `FLEET.NAME`."""
    find(fleet)  # a lock is made only of what can be a name
    with disk.guarded(checkout.state()), lock.held(checkout.state(), fleet):
        return find(fleet).take_down()  # now: an `up` that had the lock has made what there is


def find(fleet: str) -> There:
    """`fleet` as it is on this machine. Raises `FLEET.NAME` for a name that no fleet has or had."""
    from sparkserve.local import several, single

    return several.Nodes(fleet) if several.exists(fleet) else single.Engine(fleet)


def ready(fleet: str) -> tuple[There, Serving]:
    """`fleet`, and who answers for it. Raises `ENGINE.STATE` unless it is ready, and `FLEET.NAME`."""
    there = find(fleet)
    serving = there.serving()
    if serving.state != "ready":
        raise SparkserveError(
            "ENGINE.STATE",
            expected="an engine that is ready to be asked",
            found=f"it is {serving.state}" + (f": {serving.reason}" if serving.reason else ""),
            where=fleet,
            do=advice(serving.state, fleet),
        )
    return there, serving
