"""A node's side of a deployment that is killed before each of its calls: done or not done, and it goes on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from deploy_node import DeployNode, plan

from sparkserve.deploy.plan import Base

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.deploy.member import Member
    from sparkserve.deploy.state import State

CUTS = 15
PLAN = plan(Base(generation=1, path="/nix/store/one"), "/nix/store/two")
COMMANDS: dict[str, Callable[[Member], State]] = {
    "begin": lambda member: member.begin(PLAN, "me"),
    "take": lambda member: member.take(PLAN.id, 1, "you"),
    "note": lambda member: member.note(PLAN.id, 2, "stopped"),
    "decide": lambda member: member.decide(PLAN.id, 2, "keep"),
    "end": lambda member: member.end(PLAN.id, 2),
}


class Killed(BaseException):
    """The end of a process, wherever it is."""


def before(folder: Path, verb: str) -> DeployNode:
    """A node for which `verb` comes next."""
    node = DeployNode(folder)
    node.closure("one")
    node.closure("two")
    node.switch("/nix/store/one")
    for name, do in COMMANDS.items():
        if name == "end":
            node.switch("/nix/store/two")
        if name == verb:
            break
        do(node.member)
    return node


@pytest.mark.parametrize("verb", COMMANDS)
def test_killed_at_every_step(tmp_path: Path, verb: str) -> None:
    """The first of `CUTS` is a kill; with the others the power goes too."""
    do = COMMANDS[verb]
    done = do(before(tmp_path / "whole", verb).member)
    found: set[bool] = set()
    number = 0
    while True:
        for cut in range(CUTS):
            node = before(tmp_path / f"{number}-{cut}", verb)
            known = node.member.look()
            with node.ending_at(number, Killed):
                try:
                    do(node.member)
                except Killed:
                    pass
                else:
                    assert number > 2 and found >= {False, True}
                    return
            if cut:
                node.power_cut(random.Random(f"{number} {cut}"))  # noqa: S311 - no secret
            left = node.member.look()
            assert left in (known, done), (number, cut)
            found.add(left == done)
            if left.past:
                assert node.held("kept") == "/nix/store/two"
            if left.open is not None:
                assert (node.held("deploy"), node.held("deploy-base")) == ("/nix/store/two", "/nix/store/one")
            if left == known or verb != "take":  # whose answer counts: look, and take again
                assert do(node.member) == done
            assert node.member.look() == done
        number += 1
