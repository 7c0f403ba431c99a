"""Moves all nodes of a fleet to the closures of a deploy plan, proves them, and keeps them, or undoes itself.

The order: copied and verified everywhere; asked whether they would take it; leased, the head first; drained
and stopped; activated, workers first; made current; compared; started; answering; the plan's gates; decided
on the head. Until that decision whatever goes wrong is undone, and from it on everything is finished: here,
or by `deploy --resume`.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sparkserve import commands
from sparkserve.deploy import members, preflight
from sparkserve.deploy.lease import CHANGE, SERVED, Lease, looks
from sparkserve.deploy.resume import End, settle
from sparkserve.deploy.survey import descriptions
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.terminal import console, phase
from sparkserve.transport import deliver, rollout

if TYPE_CHECKING:
    from sparkserve.deploy.history import History
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.state import Outcome
    from sparkserve.runner import Runner


class Way(Protocol):
    """How a deployer reaches a fleet: its nodes, and its endpoint."""

    def connect(self) -> Runner:
        """A new runner that may do anything on the nodes. The caller closes it."""
        ...

    def healthy(self) -> None:
        """Wait until the endpoint answers with a token. Raises `ENGINE.READY`."""
        ...

    def prove(self, plan: DeployPlan) -> None:
        """Run the plan's gates against the endpoint. Raises `GATE.FAILED`."""
        ...


def run(way: Way, plan: DeployPlan, history: History) -> str:
    """Do exactly `plan`; `history` is the deployer's own journal. Ctrl-C undoes it as any failure does.

    Returns when it is kept: why the group does not run as it should, mostly nothing.
    Raises `DEPLOY.UNDONE` when it failed and all nodes have what they had, `DEPLOY.OPEN` when some have not
    come to its end, `DEPLOY.FENCED` when another deployer has taken over, and what kept it from beginning.
    """
    targets = {member.name: Path(member.target) for member in plan.members}
    try:
        with closing(way.connect()) as runner:
            lease = Lease(runner, plan, members.deployer())
            there = [member.name for member in plan.members if member.bytes == 0]
            deliver.deliver(runner, targets, there=there)
            preflight.check(runner, plan)
            history.begin(plan, lease.deployer)
            lease.begin()
            _forward(way, lease, targets, history)
            history.note("decide")
            lease.decide(plan.head.name, "keep")
            End(lease, way.healthy).end("keep")
    except (Exception, KeyboardInterrupt) as cause:
        if not history.open or (isinstance(cause, SparkserveError) and cause.id == "DEPLOY.FENCED"):
            raise
        return _after(way, lease, history, cause)
    _ended(history, "keep")
    return ""


def _forward(way: Way, lease: Lease, targets: dict[str, Path], history: History) -> None:
    """Everything from the lease to the proof."""
    head = lease.plan.head.name
    lacking = rollout.lacking(lease.runner, targets)
    if None in lacking.values():
        history.note("stop")
        status = rollout.status(lease.runner, head)
        served = [SERVED] if status is not None and status.wanted else []
        lease.note(head, *served, CHANGE)
        with phase("Drain and stop the group"):
            rollout.stop(lease.doing("stop"), targets)
        history.note("activate")
        with phase("Activate the closure on all nodes") as detail:
            rollout.activate_all(lease.doing("activate"), targets, detail)
            switching = lease.doing("switch")
            deliver.parallel(switching, targets, lambda node: deliver.switch(switching, node, targets[node]))
        lacking = dict(rollout.units(targets))
    _compare(lease.runner, lease.plan)
    history.note("start")
    starting = lease.doing("start")
    rollout.start_units(starting, {node: found for node, found in lacking.items() if found})
    rollout.start_group(starting, head)
    way.healthy()
    history.note("prove")
    way.prove(lease.plan)


def _compare(runner: Runner, plan: DeployPlan) -> None:
    """Raise `DEPLOY.BASE` unless what is current on every node is of the plan's fleet id."""
    found: dict[str, str] = {}

    def look(node: str) -> None:
        there = descriptions(runner, node, [commands.PROFILE])[commands.PROFILE]
        found[node] = there.fleet_id if there else "none"

    deliver.parallel(runner, {member.name: None for member in plan.members}, look)
    if others := {node: id for node, id in found.items() if id != plan.target_fleet_id}:
        raise SparkserveError(
            "DEPLOY.BASE",
            expected=f"the fleet id {plan.target_fleet_id[:12]} on all nodes",
            found=", ".join(f"{id[:12]} on {node}" for node, id in sorted(others.items())),
            where=plan.fleet,
            do="Something else changes the nodes' profiles: look for it there, and deploy again.",
        )


def _after(way: Way, lease: Lease, history: History, cause: BaseException) -> str:
    """End what is open of ours after `cause`; returns as `run` when it was decided to be kept."""
    plan, why = lease.plan, str(cause) or type(cause).__name__
    if isinstance(cause, KeyboardInterrupt):
        why = "interrupted"  # it carries a number
    console.print(f"Deployment {plan.id} does not go on: {why}")
    # A new runner: Ctrl-C ended the other one.
    with closing(way.connect()) as runner:
        try:
            said = looks(runner, [member.name for member in plan.members])
        except KeyboardInterrupt:
            raise _open(plan, why, "interrupted") from cause
        head = said[plan.head.name]
        if not isinstance(head, SparkserveError) and (
            head.open is None or head.open.deployer != lease.deployer
        ):
            raise _taken_over(plan, why) if lease.held else cause
        try:
            ended = settle(runner, plan, lease.deployer, way.healthy, said)
        except (SparkserveError, KeyboardInterrupt) as error:
            if isinstance(error, SparkserveError) and error.id == "DEPLOY.FENCED":
                raise
            raise _open(
                plan, why, str(error) if isinstance(error, SparkserveError) else "interrupted"
            ) from cause
    _ended(history, ended.outcome)
    if ended.outcome == "undo":
        trouble = f"; and the group does not run as before: {ended.trouble}" if ended.trouble else ""
        raise SparkserveError(
            "DEPLOY.UNDONE",
            expected=f"deployment {plan.id} to be kept",
            found=why + trouble,
            where=plan.fleet,
            do="All nodes have what they had before. Mend the cause, and deploy again.",
        ) from cause
    return ended.trouble


def _ended(history: History, outcome: Outcome) -> None:
    with suppress(SparkserveError, OSError):  # what happened on the nodes counts
        history.end(outcome)


def _taken_over(plan: DeployPlan, why: str) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.FENCED",
        expected=f"deployment {plan.id} to be ours until its end",
        found=f"{why}; and another deployer has gone on with it, or has ended it",
        where=plan.fleet,
        do="To see how it ended, or who has it: " + command("generations", plan.fleet),
    )


def _open(plan: DeployPlan, why: str, then: str) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.OPEN",
        expected=f"deployment {plan.id} kept or undone on all nodes",
        found=f"{why}; then: {then}",
        where=plan.fleet,
        do=f"When all nodes answer: {command('deploy --resume', plan.fleet)}. Until then no other begins.",
    )
