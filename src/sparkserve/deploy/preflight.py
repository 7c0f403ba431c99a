"""Would each node take its target? Asked while the old group still serves. Changes nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.deploy import members
from sparkserve.errors import SparkserveError
from sparkserve.runner import failed
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.runner import Runner


def check(runner: Runner, plan: DeployPlan) -> None:
    """Raise what an activation of the targets, which are on their nodes, would refuse with.

    `KEY.FILE` on a head without its keys; `NODE.FOREIGN` for files edited by hand, which the way back would
    refuse too. What is current already is not activated.
    """
    targets = {
        member.name: member.target
        for member in plan.members
        if member.base is None or member.base.path != member.target
    }

    def ask(node: str) -> None:
        command = commands.preview(targets[node])
        result = runner.run(node, command)
        if result.code != 0:
            said = (result.err or result.out).strip()[-300:]
            raise members.told(result) or failed(node, command, f"exit code {result.code}: {said}")
        with suppress(ValueError, KeyError, TypeError):  # another version may say it otherwise
            if by_hand := json.loads(result.out)["foreign"]:
                raise _foreign(node, by_hand)

    parallel(runner, targets, ask)


def _foreign(node: str, files: list[str]) -> SparkserveError:
    return SparkserveError(
        "NODE.FOREIGN",
        expected="the files that the last activation wrote",
        found=f"edited by hand: {', '.join(files)}",
        where=node,
        do=f"Put what you need into fleet.nix; then, with the group stopped, {commands.PROFILE}/bin/activate "
        "--replace there, which keeps copies in /var/lib/sparkserve/activation/kept.",
    )
