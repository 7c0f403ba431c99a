"""Fleets on this machine, of one node or of several: `up`, `down` and `status` come here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.fleet import plans
from sparkserve.output import phase

if TYPE_CHECKING:
    from collections.abc import Callable


class Up(NamedTuple):
    """What `up` did: where the model is served, whether it was before, the seconds of each phase.

    `pid` is the engine's on this machine, None when it runs on nodes of its own.
    """

    model: str
    endpoint: str
    fleet_id: str
    already: bool
    pid: int | None
    seconds: dict[str, float]


class Serving(NamedTuple):
    """Who answers for a fleet: `state` is `ready` or what it is in; `answered` notes an answer's seconds."""

    state: str
    endpoint: str
    model: str
    answered: Callable[[float], object]


def bring_up(fleet: str) -> Up:
    """Make `fleet` serve what its files say. Raises any error of the phases."""
    from sparkserve.local import several, single

    with phase("Evaluate the plan"):
        found = plans.load(fleet)
    return single.bring_up(found[0]) if len(found) == 1 else several.bring_up(found)


def take_down(fleet: str) -> bool:
    """Stop `fleet`, also one whose files are gone; False when there was nothing."""
    from sparkserve.local import several, single

    return several.take_down(fleet) or single.take_down(fleet)


def report(fleet: str) -> list[dict[str, Any]]:
    """The state of every node. Raises `FLEET.NAME`."""
    from sparkserve.engine import status
    from sparkserve.local import several, single

    if several.exists(fleet):
        return several.report(fleet)
    return [status.report(files) for files in single.nodes(fleet)]


def serving(fleet: str) -> Serving:
    """Who answers for `fleet`. Raises `FLEET.NAME`."""
    from sparkserve.engine import status
    from sparkserve.local import several, single

    if several.exists(fleet):
        return several.serving(fleet)
    for files in single.nodes(fleet):
        if run := files.load():
            return Serving(status.state(run), run.endpoint, run.model, partial(files.answered, run))
    return Serving("stopped", "", "", lambda seconds: None)
