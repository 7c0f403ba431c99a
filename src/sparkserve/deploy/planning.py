"""Makes a deploy plan of what the nodes have and what they are to have. Changes nothing."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from sparkserve import commands, nix
from sparkserve.deploy import survey
from sparkserve.deploy.plan import DeployPlan, Downtime, Member
from sparkserve.engine import closure
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.runner import check
from sparkserve.transport import rollout
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sparkserve.deploy.survey import Found
    from sparkserve.group.protocol import Status
    from sparkserve.runner import Runner

BOOTS = 5  # the last ones, for the time that the next is expected to take


def for_closures(
    runner: Runner, fleet: str, closures: Mapping[str, Path], gates: Sequence[str]
) -> DeployPlan:
    """The plan that brings built `closures` (by node, the head first) to the nodes.

    Raises `DEPLOY.LEASE` while one is open, and as `make`.
    """
    found = survey.unleased(runner, closures)
    ids = {closure.load(path).fleet_id for path in closures.values()}
    if len(ids) > 1:
        raise SparkserveError(
            "NODE.CLOSURE",
            expected="closures of one fleet id",
            found=", ".join(sorted(id[:12] for id in ids)),
            where=fleet,
            do=f"Build them from one state of the files: {command('deploy', fleet)}.",
        )
    lacking: dict[str, int] = {}

    def look(node: str) -> None:
        paths = nix.closure([closures[node]])
        missing = check(runner, node, commands.lacking(*paths)).split()
        lacking[node] = sum(paths[path].size for path in missing)

    parallel(runner, closures, look)
    targets = {node: str(path) for node, path in closures.items()}
    return make(runner, fleet, targets, ids.pop(), found, lacking, gates)


def make(
    runner: Runner,
    fleet: str,
    targets: Mapping[str, str],
    fleet_id: str,
    found: Mapping[str, Found],
    lacking: Mapping[str, int],
    gates: Sequence[str],
) -> DeployPlan:
    """The plan to bring each node to its target, `lacking` so many bytes of it.

    Raises `NODE.CLOSURE` for a profile that is not ours, `DEPLOY.BASE` when what is current is not of one
    fleet id, and `DEPLOY.NOTHING` when all have and have kept what they get, and it serves.
    """
    for node, there in found.items():
        _ours(node, there)
    bases = {there.fleet_id for there in found.values() if there.fleet_id}
    if len(bases) > 1:
        raise _several(fleet, found)
    current = {node: there.base.path if there.base else None for node, there in found.items()}
    same = current == dict(targets)
    status = rollout.status(runner, next(iter(targets)))
    serves = status is not None and status.state == "up"
    if same and serves and all(targets[node] in there.kept for node, there in found.items()):
        raise SparkserveError(
            "DEPLOY.NOTHING",
            expected="another closure than the one that runs",
            found=f"the fleet id {fleet_id[:12]} on all nodes, and kept",
            where=fleet,
            do="Edit the fleet's files first. What can be gone back to: " + command("generations", fleet),
        )
    return DeployPlan(
        fleet=fleet,
        members=tuple(
            Member(name=node, base=found[node].base, target=target, bytes=lacking[node])
            for node, target in targets.items()
        ),
        base_fleet_id=bases.pop() if bases else None,
        target_fleet_id=fleet_id,
        gates=tuple(gates),
        downtime=_downtime(status, same=same),
    )


def _downtime(status: Status | None, *, same: bool) -> Downtime | None:
    """What is expected of the endpoint; None when no boot has been seen."""
    if status is None or status.state != "up":
        return Downtime(seconds=0, source="nothing is served now")
    if same:
        return Downtime(seconds=0, source="it runs already, and is only proven")
    boots = [start.up_at - start.at for start in status.starts if start.up_at is not None][-BOOTS:]
    if not boots:
        return None
    seconds = round(statistics.median(boots), 1)
    return Downtime(
        seconds=seconds, source=f"the median of {len(boots)} boots; draining and activation add to it"
    )


def _ours(node: str, there: Found) -> None:
    """Raise `NODE.CLOSURE` unless what is current is a closure of this node, or nothing."""
    if there.base is None:
        return
    described = there.described[there.base.path]
    if described is None or described.node != node:
        raise SparkserveError(
            "NODE.CLOSURE",
            expected=f"a host closure of {node} as the current generation, or none",
            found=f"one of {described.node}" if described else f"{there.base.path}, which is none",
            where=f"{node}, {commands.PROFILE}",
            do="What is not of sparkserve is left alone: move that profile away, or give it another name.",
        )


def _several(fleet: str, found: Mapping[str, Found]) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.BASE",
        expected="one fleet id on all nodes, so that an undo has something to go back to",
        found=", ".join(f"{(there.fleet_id or 'none')[:12]} on {node}" for node, there in found.items()),
        where=fleet,
        do=f"Make them one first: {command('up', fleet)} on this machine's nodes; elsewhere, with a PATH "
        f"that each has ({command('generations', fleet)}): PATH/bin/activate, and "
        f"nix-env --profile {commands.PROFILE} --set PATH.",
    )
