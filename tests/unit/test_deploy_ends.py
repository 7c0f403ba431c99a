"""How a deployment ends when half a fleet is asked, a disk is full, or the group fails after the decision."""

from __future__ import annotations

import errno
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from deploy_world import NODES, World, plan_to, running
from simulated_deployer import Deployer, Way
from simulated_node import closure, unreachable

from sparkserve.deploy import deployer, resume, survey, transaction, way
from sparkserve.deploy.history import History
from sparkserve.deploy.resume import Ended
from sparkserve.deploy.survey import Described
from sparkserve.errors import SparkserveError
from sparkserve.local import triangle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simulated_node import Node

    from sparkserve.commands import Command
    from sparkserve.deploy.state import Outcome
    from sparkserve.runner import Result


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    return running(tmp_path, "a")


def keeps(world: World, folder: Path, version: str) -> str:
    return transaction.run(Way(world, "me"), plan_to(world, version), History(folder))


def test_a_fleet_that_lost_a_node_in_between_decides_nothing_for_it(world: World) -> None:
    plan = plan_to(world, "b")
    for node in world.nodes.values():
        node.member.begin(plan, "gone")
    for nodes, id, missing in ((NODES[1:], "DEPLOY.HEAD", "spark-0"), (NODES[:2], "DEPLOY.OPEN", "spark-2")):
        with pytest.raises(SparkserveError) as caught:
            resume.resume(Deployer(world, "me"), nodes, "me", lambda: None)
        assert caught.value.id == id and f"the node {missing}, which is part of" in caught.value.found
        assert world.nodes["spark-0"].member.look().open is not None
    (ended,) = resume.resume(Deployer(world, "me"), NODES, "me", lambda: None)
    assert ended.outcome == "undo"
    assert [node.member.look().open for node in world.nodes.values()] == [None] * 3


def test_what_is_kept_and_does_not_run_says_why(world: World, tmp_path: Path) -> None:
    def fault(node: Node, command: Command, do: Callable[[], Result]) -> Result:
        result = do()
        if command.argv[-1] == "keep":  # the decision; its answer is lost, and with it the engine
            world.broken = "b"
            world.fault = lambda node, command, do: do()
            raise unreachable(node.name)
        return result

    world.fault = fault
    assert "GROUP.BOOT" in keeps(world, tmp_path / "state", "b")
    assert {name: node.path for name, node in world.nodes.items()} == {
        name: closure(name, "b") for name in NODES
    }


def test_what_is_kept_on_all_nodes_is_kept_though_this_disk_is_full(world: World, tmp_path: Path) -> None:
    class Full(History):
        def end(self, outcome: Outcome) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    assert transaction.run(Way(world, "me"), plan_to(world, "b"), Full(tmp_path / "state")) == ""
    assert world.up == "b"


def reached(world: World, monkeypatch: pytest.MonkeyPatch, here: object) -> None:
    """Let the fleet desk be the nodes of `world`; `here` is None when they are not on this machine."""
    head = SimpleNamespace(fleet=SimpleNamespace(name="desk"))
    to = SimpleNamespace(
        head=head, here=here, nodes=NODES, healthy=None, connect=lambda: Deployer(world, "me")
    )
    monkeypatch.setattr(way, "to", lambda fleet: to)
    monkeypatch.setattr("sparkserve.checkout.found", lambda: True)


def ends(monkeypatch: pytest.MonkeyPatch, ended: Ended, error: SparkserveError | None = None) -> None:
    """Let a resume end one deployment, and then raise `error`."""

    def resumed(*given: Any) -> list[Ended]:
        given[-1](ended)
        if error:
            raise error
        return [ended]

    monkeypatch.setattr(resume, "resume", resumed)


def test_a_resume_is_told_though_the_journal_here_is_broken(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_to(world, "b")
    reached(world, monkeypatch, here=None)
    ends(monkeypatch, Ended(plan, "undo"))
    folder = tmp_path / ".sparkserve/deploy/desk/journal"
    folder.mkdir(parents=True)
    (folder / f"000001-{plan.id}").write_text("x\n")
    told: list[Ended] = []
    assert deployer.resume("desk", told.append) == told == [Ended(plan, "undo")]
    assert "DEPLOY.JOURNAL" in capsys.readouterr().err


def test_what_has_ended_is_told_though_a_later_one_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_to(world, "b")
    reached(world, monkeypatch, here=None)
    ends(monkeypatch, Ended(plan, "undo"), unreachable("spark-2"))
    told: list[Ended] = []
    with pytest.raises(SparkserveError, match="spark-2"):
        deployer.resume("desk", told.append)
    assert told == [Ended(plan, "undo")]


@pytest.mark.parametrize(("outcome", "version"), [("undo", "a"), ("keep", "b")])
def test_after_a_resume_nodes_of_this_machine_are_known_by_what_they_have(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, version: str
) -> None:
    plan = plan_to(world, "b")
    reached(world, monkeypatch, here=object())
    adopted: list[Any] = []

    def described(_: object, node: str, paths: list[str]) -> dict[str, Described]:
        return {path: Described("desk", node, "", f'"{path}"') for path in paths}

    ends(monkeypatch, Ended(plan, outcome))
    monkeypatch.setattr(survey, "descriptions", described)
    monkeypatch.setattr("sparkserve.plan.parse", lambda value: value)
    monkeypatch.setattr(triangle, "adopt", lambda _, known, dry: adopted.extend(known))
    deployer.resume("desk", lambda ended: None)
    assert adopted == [closure(name, version) for name in NODES]


def test_a_rollback_to_a_plan_of_another_version_says_how_to_get_there(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in "bc":
        keeps(world, tmp_path / "state", version)
    here = SimpleNamespace(here=object(), nodes=NODES, connect=lambda allow: Deployer(world, "me"))
    monkeypatch.setattr(way, "to", lambda fleet: here)
    with pytest.raises(SparkserveError) as caught:
        deployer.roll_back("desk", None, apply=False, show=print)
    error = caught.value
    assert (error.id, error.where) == ("PLAN.SCHEMA", f"spark-0, {closure('spark-0', 'b')}")
    assert "another version" in error.found and "./sparkserve down --fleet desk" in error.do


@pytest.mark.parametrize("later", range(1, 30))
def test_a_stop_that_comes_late_does_not_end_the_group_that_was_started_again(
    world: World, tmp_path: Path, later: int
) -> None:
    """Found by seed 40736 of the simulation."""
    late: list[Callable[[], Result]] = []
    calls = 0

    def fault(node: Node, command: Command, do: Callable[[], Result]) -> Result:
        nonlocal calls
        argv = command.argv
        if "undo" in argv and "decide" in argv:
            calls = 1
        elif calls and not late and node.name == "spark-2" and "stop" in argv:
            late.append(do)
            raise unreachable(node.name)
        elif late:
            calls += 1
            if calls == later + 1:
                with suppress(SparkserveError):  # refused, or too late to do harm
                    late[0]()
        return do()

    world.fault = fault
    with pytest.raises(SparkserveError) as caught:
        transaction.run(Way(world, "me", proves=False), plan_to(world, "b"), History(tmp_path / "history"))
    assert caught.value.id == "DEPLOY.UNDONE"
    assert late
    assert world.up == "a"
