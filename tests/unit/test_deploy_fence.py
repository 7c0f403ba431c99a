"""Only who holds a node changes it, and what he has begun ends before somebody else takes over."""

from __future__ import annotations

import os
import random
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from deploy_world import World, plan_to

from sparkserve.cli import deploy_member
from sparkserve.deploy import member
from sparkserve.errors import SparkserveError
from sparkserve.host import activate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simulated_node import Node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    world = World(tmp_path, random.Random(0))  # noqa: S311 - no secret
    found = world.nodes["spark-0"]
    found.member.begin(plan_to(world, "b"), "me")
    return found


@pytest.fixture(autouse=True)
def pipes() -> Iterator[None]:
    """A program gets SIGPIPE's default; the tests' own process would die of it at its next broken pipe."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)


def epoch(node: Node) -> tuple[str, int]:
    now = node.member.look().open
    assert now is not None
    return now.id, now.epoch


def test_who_takes_over_waits_for_what_was_begun(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "EFFECT_S", 0.0)
    id, first = epoch(node)
    running = node.member.effect(id, first, "activate")
    with pytest.raises(SparkserveError, match="another one that has not ended") as caught:
        node.member.take(id, first, "other")
    assert caught.value.id == "DEPLOY.LEASE"
    os.close(running)
    node.member.take(id, first, "other")
    with pytest.raises(SparkserveError) as caught:
        node.member.effect(id, first, "switch")
    assert caught.value.id == "DEPLOY.FENCED"
    now = node.member.look().open
    assert now is not None and now.steps == ("activate",)


def test_the_lock_lives_as_long_as_the_program(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "EFFECT_S", 0.0)
    became: list[tuple[str, list[str]]] = []
    id, first = epoch(node)
    others = _inherited()

    def become(program: str, argv: list[str]) -> None:
        became.append((program, argv))
        with pytest.raises(SparkserveError, match="another one that has not ended"):
            node.member.take(id, first, "other")
        inherited = _inherited() - others
        assert inherited, "the program would run without the lock"
        for fd in inherited:
            os.close(fd)  # it ends

    monkeypatch.setattr(member, "Member", lambda: node.member)
    monkeypatch.setattr(os, "execvp", become)
    words = ["do", id, str(first), "start", "--", "systemctl", "start", "--no-block", "x"]
    result = CliRunner().invoke(deploy_member.group, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert became == [("systemctl", words[5:])]
    result = CliRunner().invoke(deploy_member.group, ["do", id, "7", "start", "--", "true"])
    assert result.exit_code == 92
    assert '"DEPLOY.FENCED"' in result.stdout
    assert len(became) == 1


def test_an_activation_of_its_own_closure_holds_the_lock_too(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "EFFECT_S", 0.0)
    monkeypatch.setattr(member, "Member", lambda: node.member)
    monkeypatch.setattr(sys, "argv", ["/nix/store/b/bin/sparkserve"])
    id, first = epoch(node)
    activated: list[tuple[str, list[str]]] = []

    def main(closure: str, argv: list[str]) -> None:
        activated.append((closure, argv))
        with pytest.raises(SparkserveError, match="another one that has not ended"):
            node.member.take(id, first, "other")

    monkeypatch.setattr(activate, "main", main)
    words = ["do", id, str(first), "activate", "--", "/nix/store/b/bin/activate", "--replace"]
    assert CliRunner().invoke(deploy_member.group, words, catch_exceptions=False).exit_code == 0
    assert activated == [("/nix/store/b", ["--replace"])]


def _inherited() -> set[int]:
    found = set()
    for fd in range(3, 256):
        with suppress(OSError):
            if os.get_inheritable(fd):
                found.add(fd)
    return found
