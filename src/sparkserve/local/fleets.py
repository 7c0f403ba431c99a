"""Fleets: on this machine, of one node or of several, or Sparks. Each is found and asked in one form.

`up` goes by what the fleet's files say, the others by what is there: files may have changed, or be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sparkserve import checkout, disk
from sparkserve.errors import SparkserveError
from sparkserve.fleet import DEFAULT_FLEET, about, command, names, plans
from sparkserve.local import lock
from sparkserve.terminal import console, phase

if TYPE_CHECKING:
    from sparkserve.plan import Plan
    from sparkserve.reach.afar import Afar
    from sparkserve.reach.there import Serving, There

# What a state means and what to do about it, of a fleet on this machine.
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
    return about(ADVICE.get(state, ""), fleet)


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


def bring_up(fleet: str) -> Up:
    """Make `fleet` serve what its files say. Raises `FLEET.OPTION` for Sparks, else any error of a phase."""
    from sparkserve.local import several, single
    from sparkserve.reach import afar

    with phase("Evaluate the plan"):
        found = plans.load(fleet)
        if afar.needed(found[0]):
            raise _of_sparks(found[0])
        plans.require_packages(found[0])
    return single.bring_up(found[0]) if len(found) == 1 else several.bring_up(found)


def take_down(fleet: str) -> bool:
    """Stop `fleet`, also one whose files are gone; False when there was nothing. Raises `FLEET.NAME`."""
    names.check(fleet)  # a lock is made only of what can be one
    with disk.guarded(checkout.state()), lock.held(checkout.state(), fleet):
        return find(fleet).take_down()  # now: an `up` that had the lock has made what there is


def restart(fleet: str) -> None:
    """Stop `fleet` and start it again: Sparks with what they have, else with what its files say."""
    from sparkserve.reach import sparks

    there = find(fleet)
    if isinstance(there, sparks.Sparks):
        with disk.guarded(checkout.state()), lock.held(checkout.state(), fleet):
            there.restart()
    else:
        take_down(fleet)
        bring_up(fleet)


def find(fleet: str) -> There:
    """`fleet` as it is: on this machine if anything of it is, else as its plan says where its nodes are.

    On a node, which has no checkout, the fleet of that node. Raises `FLEET.NAME` for a name that no fleet has
    or had, and for a fleet that does not run here what evaluating its plan raises.
    """
    from sparkserve.local import several, single
    from sparkserve.reach import afar, sparks

    if not checkout.found():
        return sparks.Sparks(_of_this_node(fleet))
    if several.exists(fleet):
        return several.Nodes(fleet)
    engine = single.Engine(fleet)
    if engine.recorded or fleet not in names.known():
        return engine
    head = plans.load(fleet)[0]
    return sparks.Sparks(afar.Afar(head)) if afar.needed(head) else engine


def with_logs(fleet: str) -> There:
    """As `find`; also a fleet that has left logs here, and whose plan is no longer evaluated."""
    from sparkserve.local import single

    try:
        return find(fleet)
    except SparkserveError as error:
        engine = single.Engine(fleet)
        if not engine.left:
            raise
        console.print(f"Nothing but this machine is looked at: {error}", markup=False)
        return engine


def ready(fleet: str) -> tuple[There, Serving]:
    """`fleet`, and who answers for it. Raises `ENGINE.STATE` unless it is ready, and as `find`."""
    there = find(fleet)
    serving = there.serving()
    if serving.state != "ready":
        raise SparkserveError(
            "ENGINE.STATE",
            expected="an engine that is ready to be asked",
            found=f"it is {serving.state}" + (f": {serving.reason}" if serving.reason else ""),
            where=there.name,
            do=there.advice(serving.state),
        )
    return there, serving


def _of_this_node(fleet: str) -> Afar:
    """The way from this node to its fleet, which `fleet` is unless nobody has named one."""
    from sparkserve.reach import afar

    found = afar.from_node()
    own = found.head.fleet.name
    if fleet not in (own, DEFAULT_FLEET):
        raise SparkserveError(
            "FLEET.NAME",
            expected=f"{own}, the fleet of this node",
            found=fleet,
            where="this machine, which has no checkout",
            do="Leave out --fleet, or ask from a checkout that has that fleet.",
        )
    return found


def _of_sparks(head: Plan) -> SparkserveError:
    name = head.fleet.name
    return SparkserveError(
        "FLEET.OPTION",
        expected="a fleet whose nodes can be made on this machine",
        found=f"an engine that needs {head.engine.devices[0]}, so its nodes are machines of their own",
        where=f"hosts/{name}/fleet.nix",
        do=f"{command('deploy', name)} moves them to what the files say.",
    )
