"""Whether each node's current generation is also what its systemd runs. Changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.commands import PROFILE
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.deploy.survey import Found
    from sparkserve.runner import Runner


def check(runner: Runner, fleet: str, found: Mapping[str, Found]) -> None:
    """Raise `DEPLOY.BASE` where units are of another closure than the current generation, or one is missing.

    `found` are all nodes, the head first. An activation by hand, or an `up` that was killed in the middle,
    leaves it so. Stopped units are still of their closure.
    """
    if not any(there.base for there in found.values()):
        return
    paths = {node: Path(there.base.path if there.base else "/") for node, there in found.items()}
    if others := [node for node, units in rollout.lacking(runner, paths).items() if units is None]:
        raise SparkserveError(
            "DEPLOY.BASE",
            expected="units of the current generation on all nodes",
            found=f"others, or none, on {', '.join(sorted(others))}",
            where=fleet,
            do=f"Somebody activated by hand, or an up was killed. {command('up', fleet)} makes them one on "
            f"this machine's nodes, and {PROFILE}/bin/activate on each other one.",
        )
