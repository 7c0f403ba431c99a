"""Plans the way back: to what a node still has of an earlier deployment, by what was kept, not by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.deploy import planning, survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.survey import Found
    from sparkserve.runner import Runner


def plan(runner: Runner, fleet: str, nodes: Sequence[str], to: str | None) -> DeployPlan:
    """The plan back to the generation `to` of the head (a number or a path; it must be a kept one).

    None: to what was kept last, and is not what runs. It has no gates: it was proven when it was kept. Raises
    `DEPLOY.LEASE` while a deployment is open, `DEPLOY.NOTHING` when there is no such generation, or a node
    has none of that fleet id, and as `make` of planning.
    """
    found = survey.unleased(runner, nodes)
    head = found[nodes[0]]
    path = _latest(fleet, head) if to is None else _named(fleet, head, to)
    there = head.described[path]
    if there is None:
        raise _nothing(fleet, f"{path}, which is no host closure")
    targets = {node: _of(fleet, node, found[node], there.fleet_id) for node in nodes}
    return planning.make(runner, fleet, targets, there.fleet_id, found, dict.fromkeys(nodes, 0), ())


def _latest(fleet: str, head: Found) -> str:
    """The closure kept last that is not current and still there."""
    present = {generation.path for generation in head.generations}
    current = head.base.path if head.base else None
    for past in reversed(head.state.past):
        if past.outcome == "keep" and past.path in present and past.path != current:
            return past.path
    raise _nothing(fleet, "no kept generation but what runs")


def _named(fleet: str, head: Found, to: str) -> str:
    for generation in head.generations:
        if to in (str(generation.number), generation.path):
            if generation.path not in head.kept:
                raise _nothing(fleet, f"generation {generation.number}, which was never kept")
            return generation.path
    numbers = ", ".join(str(each.number) for each in head.generations if each.path in head.kept)
    raise _nothing(fleet, f"no generation {to}; those kept are {numbers or 'none'}")


def _of(fleet: str, node: str, there: Found, fleet_id: str) -> str:
    """The node's own closure of that fleet id."""
    for generation in reversed(there.generations):
        described = there.described[generation.path]
        if described is not None and (described.fleet_id, described.node) == (fleet_id, node):
            return generation.path
    raise _nothing(fleet, f"no generation of the fleet id {fleet_id[:12]} on {node}")


def _nothing(fleet: str, found: str) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.NOTHING",
        expected="a kept generation to go back to",
        found=found,
        where=fleet,
        do="To see what each node has: " + command("generations", fleet),
    )
