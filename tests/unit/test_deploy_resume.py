"""Who resumes while another deployer begins sees some nodes before that and some after; all become one."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from deploy_world import NODES, World, plan_to
from simulated_deployer import Deployer, Way
from simulated_node import KilledError, Node, closure, version_of

from sparkserve.deploy import members, resume, transaction
from sparkserve.deploy.history import History
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.runner import Result


class Rival:
    """A deployer that deploys "b" after so many commands of another one, and dies before `last` on `node`."""

    def __init__(self, world: World, after: int, node: str, last: str) -> None:
        self.world, self.after, self.node, self.last = world, after, node, last
        self.calls = 0
        self.runs = False

    def __call__(self, node: Node, command: Command, do: Callable[[], Result]) -> Result:
        if self.runs and node.name == self.node and self.last in command.argv:
            raise KilledError
        self.calls += 1
        if not self.runs and self.calls == self.after:
            self.runs = True
            with suppress(KilledError):
                way = Way(self.world, "rival")
                transaction.run(way, plan_to(self.world, "b"), History(node.root.parent / "rival"))
            self.runs = False
        return do()


@pytest.mark.parametrize(
    ("node", "last", "version"),
    [
        ("spark-0", "current", "a"),  # all have activated it, and none has it as its current generation
        ("spark-1", "end", "b"),  # the head has decided to keep it
    ],
)
def test_all_nodes_end_as_the_head_says_whenever_it_began(
    tmp_path: Path, node: str, last: str, version: str
) -> None:
    for after in range(1, 14):
        world = World(tmp_path / str(after), random.Random(after))  # noqa: S311 - no secret
        for name, each in world.nodes.items():
            each.set_profile(closure(name, "a"))
            each.activate(closure(name, "a"))
            each.start()
        world.fault = Rival(world, after, node, last)
        with world.played():
            for who in ("first", "second", "third"):
                with suppress(SparkserveError):
                    resume.resume(Deployer(world, who), NODES, members.deployer(), lambda: None)
        assert world.up == version, f"after {after} commands"
        for each in world.nodes.values():
            assert each.member.look().open is None
            assert (version_of(each.path), version_of(each.activated)) == (version, version)
