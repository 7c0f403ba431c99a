"""The deployer's commands: plan, apply, resume, roll back. One at a time for a fleet and a state folder."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from sparkserve import api_key, checkout, plan
from sparkserve.commands import Safety
from sparkserve.deploy import history, members, planning, rollback, survey, transaction, way
from sparkserve.deploy import resume as resuming
from sparkserve.deploy.history import History
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, plans
from sparkserve.local import several, triangle
from sparkserve.terminal import console, phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.resume import Ended
    from sparkserve.deploy.survey import Found
    from sparkserve.deploy.way import Way
    from sparkserve.plan import Plan
    from sparkserve.runner import Runner

    Show = Callable[[DeployPlan], None]


def deploy(fleet: str, *, apply: bool, show: Show, key_file: Path | None = None) -> DeployPlan:
    """Plan what brings `fleet` to what its files say, `show` it, and do it with `apply`.

    The gates show a key of `key_file`, or of the file that the plan names.
    Raises `DEPLOY.PLAN` when another plan was shown last, `GROUP.BOOT` when it is kept and the group does not
    run, and as planning and `transaction.run`.
    """
    with phase("Evaluate the plan"):
        found = plans.load(fleet)
        plans.require_packages(found[0])
    with history.changing(fleet):
        to = way.to(fleet, found[0], key_file)
        if apply:
            api_key.headers(to.key_file)  # not only when the nodes have changed
        _adopt(to, found, dry=True)
        closures = several.build(found, {})
        with closing(to.connect(Safety.READS_HOSTS)) as runner, phase("Ask the nodes"):
            made = planning.for_closures(runner, fleet, closures, found[0].gates)
        return _shown(to, "deploy", made, found, apply=apply, show=show)


def roll_back(fleet: str, target: str | None, *, apply: bool, show: Show) -> DeployPlan:
    """The same for a generation that was kept: see `rollback.plan`."""
    with history.changing(fleet):
        to = way.to(fleet)
        with closing(to.connect(Safety.READS_HOSTS)) as runner, phase("Ask the nodes"):
            made = rollback.plan(runner, fleet, to.nodes, target)
            targets = {member.name: member.target for member in made.members}
            found = _plans(to, runner, fleet, targets)
        _adopt(to, found, dry=True)
        return _shown(to, "rollback", made, found, apply=apply, show=show)


def resume(fleet: str, tell: Callable[[Ended], None]) -> list[Ended]:
    """End what is open on the nodes of `fleet`, whoever began it; `tell` of each.

    On a node, which has no checkout, it is about the fleet of that node. Raises as `resuming.resume`.
    """
    to = way.to(fleet) if checkout.found() else way.from_node()
    with history.changing(to.head.fleet.name), closing(to.connect()) as runner:

        def note(ended: Ended) -> None:
            tell(ended)
            name = ended.plan.fleet
            try:
                History(history.of(name)).resumed(ended.plan, ended.outcome)
                _adopt(to, _plans(to, runner, name, _left(ended)))
            except (SparkserveError, OSError) as error:
                # What happened on the nodes counts, and is still to be told.
                id = ended.plan.id
                console.print(f"Deployment {id} has ended; this machine did not take note: {error}")

        return resuming.resume(runner, to.nodes, members.deployer(), to.healthy, note)


def _left(ended: Ended) -> dict[str, str]:
    """What its nodes have now. An `up` that powered them on knew them by the files' plans."""
    if ended.outcome == "keep":
        return {member.name: member.target for member in ended.plan.members}
    left = {member.name: member.base.path for member in ended.plan.members if member.base}
    return left if len(left) == len(ended.plan.members) else {}


def generations(fleet: str) -> dict[str, Found]:
    """What each node of `fleet` has, by name in rank order."""
    to = way.to(fleet)
    with closing(to.connect(Safety.READS_HOSTS)) as runner:
        return survey.survey(runner, to.nodes)


def _shown(
    to: Way, what: str, made: DeployPlan, known: Sequence[Plan], *, apply: bool, show: Show
) -> DeployPlan:
    folder = history.of(made.fleet)
    if apply:
        history.require(folder, what, made)
    show(made)
    if not apply:
        history.keep(folder, what, made)
        return made
    history.forget(folder, what)
    trouble = transaction.run(to, made, History(folder))
    _adopt(to, known)
    if trouble:
        raise SparkserveError(
            "GROUP.BOOT",
            expected=f"the group to run what deployment {made.id} has kept",
            found=trouble,
            where=made.fleet,
            do=f"{command('logs', made.fleet)} says why. It is kept, and nothing undoes it: "
            f"{command('rollback --apply', made.fleet)} goes back.",
        )
    return made


def _adopt(to: Way, known: Sequence[Plan], *, dry: bool = False) -> None:
    """Let this machine's own nodes be known by these plans. Nodes elsewhere are known by the files'."""
    if to.here and known:
        triangle.adopt(to.here, known, dry=dry)


def _plans(to: Way, runner: Runner, fleet: str, closures: Mapping[str, str]) -> list[Plan]:
    """Those of host closures that this machine's own nodes have, by node."""
    if to.here is None:
        return []
    return [_plan(runner, fleet, node, path) for node, path in closures.items()]


def _plan(runner: Runner, fleet: str, node: str, path: str) -> Plan:
    there = survey.descriptions(runner, node, [path])[path]
    try:
        return plan.parse(json.loads(there.plan if there else "null"))
    except SparkserveError as error:
        raise SparkserveError(
            "PLAN.SCHEMA",
            expected="a generation whose plan this version of sparkserve reads",
            found=f"one of another version: expected {error.expected}, found {error.found}",
            where=f"{node}, {path}",
            do=f"Check out the commit that it was made of. There {command('down', fleet)}, then "
            f"{command('up', fleet)}, bring it; the nodes keep their generations.",
        ) from None
