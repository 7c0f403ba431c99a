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
from sparkserve.output import console, phase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.deploy.plan import DeployPlan, Member
    from sparkserve.deploy.resume import Ended
    from sparkserve.deploy.survey import Described, Found
    from sparkserve.deploy.way import Way
    from sparkserve.plan import Plan

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
        if to.here:
            triangle.adopt(to.here, found, dry=True)
        closures = several.build(found, {})
        with closing(to.connect(Safety.READS_HOSTS)) as runner, phase("Ask the nodes"):
            made = planning.for_closures(runner, fleet, closures, found[0].gates)
        return _shown(to, "deploy", made, apply=apply, show=show)


def roll_back(fleet: str, target: str | None, *, apply: bool, show: Show) -> DeployPlan:
    """The same for a generation that was kept: see `rollback.plan`."""
    with history.changing(fleet):
        to = way.to(fleet)
        with closing(to.connect(Safety.READS_HOSTS)) as runner, phase("Ask the nodes"):
            made = rollback.plan(runner, fleet, to.nodes, target)
        _adopt(to, made, dry=True)
        return _shown(to, "rollback", made, apply=apply, show=show)


def resume(fleet: str) -> list[Ended]:
    """End what is open on the nodes of `fleet`, whoever began it. Raises as `resuming.resume`.

    On a node, which has no checkout, it is about the fleet of that node.
    """
    to = way.to(fleet) if checkout.found() else way.from_node()
    with history.changing(to.head.fleet.name):
        with closing(to.connect()) as runner:
            ended = resuming.resume(runner, to.nodes, members.deployer(), to.healthy)
        for each in ended:
            try:
                History(history.of(each.plan.fleet)).resumed(each.plan, each.outcome)
                if each.outcome == "keep":
                    _adopt(to, each.plan)
            except (SparkserveError, OSError) as error:
                # What happened on the nodes counts, and is still to be told.
                console.print(f"Deployment {each.plan.id} has ended; this machine did not take note: {error}")
        return ended


def generations(fleet: str) -> dict[str, Found]:
    """What each node of `fleet` has, by name in rank order."""
    to = way.to(fleet)
    with closing(to.connect(Safety.READS_HOSTS)) as runner:
        return survey.survey(runner, to.nodes)


def _shown(to: Way, what: str, made: DeployPlan, *, apply: bool, show: Show) -> DeployPlan:
    folder = history.of(made.fleet)
    if apply:
        history.require(folder, what, made)
    show(made)
    if not apply:
        history.keep(folder, what, made)
        return made
    history.forget(folder, what)
    trouble = transaction.run(to, made, History(folder))
    _adopt(to, made)
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


def _adopt(to: Way, made: DeployPlan, *, dry: bool = False) -> None:
    """Let this machine's own nodes be known by the plans of the targets, which are on them."""
    if to.here is None:
        return
    found = []
    with closing(to.connect(Safety.READS_HOSTS)) as runner:
        for member in made.members:
            there = survey.descriptions(runner, member.name, [member.target])[member.target]
            if there is not None:
                found.append(_plan(member, there))
    triangle.adopt(to.here, found, dry=dry)


def _plan(member: Member, there: Described) -> Plan:
    try:
        return plan.parse(json.loads(there.plan))
    except SparkserveError as error:
        raise SparkserveError(
            "PLAN.SCHEMA",
            expected="a generation whose plan this version of sparkserve reads",
            found=f"one of another version: expected {error.expected}, found {error.found}",
            where=f"{member.name}, {member.target}",
            do=f"Check out the commit that it was made of. There {command('down', there.fleet)}, then "
            f"{command('up', there.fleet)}, bring it; the nodes keep their generations.",
        ) from None
