"""Asks the nodes of a laptop fleet to check their cables, all at once."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.errors import SparkserveError
from sparkserve.fabric.check import Difference
from sparkserve.fleet import command
from sparkserve.local import several, triangle
from sparkserve.transport import deliver

if TYPE_CHECKING:
    from sparkserve.runner import Runner


def ask(fleet: str, node: str | None = None) -> dict[str, list[Difference]]:
    """What is not as planned, by node, of one or all. A node that does not answer is a difference too.

    Raises `ENGINE.STATE` when the fleet is down, `FLEET.NAME` for a node that it does not have.
    """
    there = triangle.load(fleet)
    names = there.nodes if node is None else [there.plan(node).node.name]
    found: dict[str, list[Difference]] = {name: [] for name in names}
    with closing(several.connect(there)) as runner:

        def work(node: str) -> None:
            found[node] = _answer(runner, node, fleet)

        deliver.parallel(runner, found, work)
    return found


def _answer(runner: Runner, node: str, fleet: str) -> list[Difference]:
    try:
        result = runner.run(node, commands.check_fabric())
        return [Difference(**each) for each in json.loads(result.out)[node]]
    except SparkserveError as error:
        return [Difference("ssh", error.expected, error.found, error.do)]
    except (ValueError, KeyError, TypeError):
        said = "".join((result.err or result.out).strip().splitlines()[-1:])
        do = f"Run {command('up', fleet)}, which brings it."
        return [Difference("sparkserve", "this version on the node", said or "no answer", do)]
