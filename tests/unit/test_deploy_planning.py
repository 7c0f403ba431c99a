"""The plan that is printed before anything changes: what, how many bytes, for how long, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deploy_world import NODES, World, plan_to, running
from simulated_deployer import Deployer, Way
from simulated_node import closure

from sparkserve import nix
from sparkserve.cli import deployed
from sparkserve.deploy import history, planning, rollback, transaction
from sparkserve.deploy.history import History
from sparkserve.deploy.journal import journals
from sparkserve.deploy.state import State
from sparkserve.engine import closure as closures
from sparkserve.errors import SparkserveError
from sparkserve.group.protocol import PastStart
from sparkserve.runner import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.deploy.plan import DeployPlan


class Answer:
    """What a built closure says of itself."""

    def __init__(self, path: Path) -> None:
        self.fleet_id = path.name[0]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """All nodes run a, as `up` has put it there."""
    made = running(tmp_path, "a")
    size = nix.Registered("", 1000, ())
    monkeypatch.setattr(nix, "closure", lambda paths: {"/nix/store/x": size, str(paths[0]): size})
    monkeypatch.setattr(closures, "load", Answer)
    with made.played():
        yield made


def planned(world: World, version: str) -> DeployPlan:
    targets = {name: Path(closure(name, version)) for name in NODES}
    return planning.for_closures(Deployer(world, "me"), "desk", targets, ("smoke",))


def kept(world: World, version: str, folder: Path) -> None:
    transaction.run(Way(world, "me"), plan_to(world, version), History(folder))


def refused(world: World, version: str = "b") -> SparkserveError:
    with pytest.raises(SparkserveError) as caught:
        planned(world, version)
    return caught.value


def test_a_plan_says_what_is_copied_where_and_for_how_long_nobody_answers(world: World) -> None:
    world.lacks = {"spark-1"}
    world.starts = tuple(
        PastStart(number=number, at=100.0, up_at=up_at)
        for number, up_at in enumerate([500.0, 120.0, None, 124.0, 122.0, 121.0, 130.0])
    )
    plan = planned(world, "b")
    assert [(member.name, member.bytes) for member in plan.members] == [
        ("spark-0", 0),
        ("spark-1", 1000),
        ("spark-2", 0),
    ]
    assert {member.base and member.base.generation for member in plan.members} == {1}
    assert (plan.base_fleet_id, plan.target_fleet_id, plan.gates) == ("a", "b", ("smoke",))
    assert plan.downtime is not None
    assert plan.downtime.seconds == 22.0  # of the last five that came up: 20, 24, 22, 21, 30
    world.starts = ()
    assert planned(world, "b").downtime is None
    world.wanted = False
    stopped = planned(world, "b").downtime
    assert stopped is not None and stopped.seconds == 0


def test_what_runs_already_is_proven_once_and_then_nothing_is_to_do(world: World, tmp_path: Path) -> None:
    plan = planned(world, "a")
    assert plan.downtime is not None and plan.downtime.seconds == 0
    boots = [node.changed_by for node in world.nodes.values()]
    transaction.run(Way(world, "me"), plan, History(tmp_path / "state"))
    assert refused(world, "a").id == "DEPLOY.NOTHING"
    # The head was told to start, which it had; nothing else was changed.
    assert boots == [[f"{plan.id} of me"], [], []]


def test_what_is_kept_and_does_not_run_is_started(world: World, tmp_path: Path) -> None:
    transaction.run(Way(world, "me"), planned(world, "a"), History(tmp_path / "state"))
    world.wanted = False  # as after `down`
    assert world.up is None
    plan = planned(world, "a")
    assert plan.downtime is not None and plan.downtime.source == "nothing is served now"
    transaction.run(Way(world, "me"), plan, History(tmp_path / "state"))
    assert world.up == "a"


def test_a_first_deployment_says_that_there_is_nothing_to_return_to(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    node = world.nodes["spark-2"]
    node.current = None
    node.link()
    deployed.show(planned(world, "b"), as_json=False)
    assert "First deployment on spark-2: there is nothing to return to." in capsys.readouterr().err


def test_what_is_not_ours_is_refused_and_untouched(world: World) -> None:
    node = world.nodes["spark-1"]
    node.set_profile(closure("spark-2", "a"))
    error = refused(world)
    assert (error.id, error.where.split(",")[0]) == ("NODE.CLOSURE", "spark-1")
    node.set_profile("/nix/store/00000000000000000000000000000000-hello")
    assert refused(world).id == "NODE.CLOSURE"
    assert node.changed_by == []


def test_bases_of_two_fleet_ids_are_nothing_to_go_back_to(world: World) -> None:
    world.nodes["spark-1"].set_profile(closure("spark-1", "c"))
    error = refused(world)
    assert error.id == "DEPLOY.BASE"
    assert "c on spark-1" in error.found


def test_no_plan_while_a_deployment_is_open(world: World) -> None:
    world.nodes["spark-2"].member.begin(plan_to(world, "c"), "somebody else")
    error = refused(world)
    assert (error.id, error.where) == ("DEPLOY.LEASE", "spark-2")
    assert "somebody else" in error.found and "--resume" in error.do


KEYLESS = SparkserveError("KEY.FILE", expected="keys", found="none", where="/etc/key", do="Make one.")


@pytest.mark.parametrize(
    ("node", "preview", "id", "said"),
    [
        ("spark-0", Result(100, json.dumps(KEYLESS.as_dict())), "KEY.FILE", "/etc/key"),
        ("spark-1", Result(0, '{"foreign": ["/etc/a"]}'), "NODE.FOREIGN", "by hand: /etc/a; where: spark-1"),
        ("spark-2", Result(1, "", "Traceback"), "NODE.COMMAND", "Traceback"),
    ],
)
def test_what_an_activation_would_refuse_is_met_while_the_old_group_serves(
    world: World, tmp_path: Path, node: str, preview: Result, id: str, said: str
) -> None:
    world.nodes[node].preview = preview
    with pytest.raises(SparkserveError) as caught:
        transaction.run(Way(world, "me"), planned(world, "b"), History(tmp_path / "state"))
    assert caught.value.id == id and said in str(caught.value)
    for each in world.nodes.values():
        assert (each.changed_by, each.member.look()) == ([], State())
    # What is in effect is only proven, whatever was edited since.
    transaction.run(Way(world, "me"), planned(world, "a"), History(tmp_path / "state"))
    world.nodes[node].preview = Result(0, "{}")  # of another version
    transaction.run(Way(world, "me"), planned(world, "b"), History(tmp_path / "state"))


def back(world: World, to: str | None = None) -> DeployPlan:
    return rollback.plan(Deployer(world, "me"), "desk", NODES, to)


def nothing(world: World, to: str | None = None) -> str:
    with pytest.raises(SparkserveError) as caught:
        back(world, to)
    assert caught.value.id == "DEPLOY.NOTHING"
    return caught.value.found


def test_rollback_goes_to_what_was_kept_not_to_the_number_before(world: World, tmp_path: Path) -> None:
    assert "no kept generation" in nothing(world)
    kept(world, "b", tmp_path / "state")
    kept(world, "c", tmp_path / "state")
    assert [member.target for member in back(world).members] == [closure(name, "b") for name in NODES]
    assert back(world).gates == ()
    assert "never kept" in nothing(world, "1")  # `up` put it there
    assert "those kept are 2, 3" in nothing(world, "9")
    assert back(world, "2") == back(world, closure("spark-0", "b"))
    world.nodes["spark-1"].generations.pop(2)
    assert "no generation of the fleet id b on spark-1" in nothing(world)
    transaction.run(Way(world, "me"), plan_to(world, "b"), History(tmp_path / "state"))
    assert {node.current for node in world.nodes.values()} == {4}
    assert back(world).target_fleet_id == "c"


def test_apply_does_what_was_printed_and_nothing_else(world: World, tmp_path: Path) -> None:
    plan, other = planned(world, "b"), planned(world, "c")
    history.require(tmp_path, "deploy", plan)  # nothing was printed
    history.keep(tmp_path, "deploy", plan)
    history.require(tmp_path, "deploy", plan.model_copy(update={"downtime": None}))
    with pytest.raises(SparkserveError) as caught:
        history.require(tmp_path, "deploy", other)
    assert caught.value.id == "DEPLOY.PLAN"
    history.require(tmp_path, "rollback", other)
    history.forget(tmp_path, "deploy")
    history.require(tmp_path, "deploy", other)


def test_a_resume_here_ends_the_journal_that_was_left_open(tmp_path: Path, world: World) -> None:
    plan = planned(world, "b")
    History(tmp_path).begin(plan, "me")  # and killed
    History(tmp_path).resumed(planned(world, "c"), "keep")
    assert [record.kind for record in journals(tmp_path / "journal")[0].records] == ["begun"]
    History(tmp_path).resumed(plan, "undo")
    assert [record.kind for record in journals(tmp_path / "journal")[0].records] == ["begun", "ended"]
