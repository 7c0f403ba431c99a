"""`status`, `logs`, `verify`, `diff` and `down` of a fleet of Sparks, whose nodes only the tests know of."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import test_reach_rows as rows
from local_values import GOLDEN, PLANS
from test_several import entries, unreachable

from sparkserve import commands, plan
from sparkserve.bench import places
from sparkserve.bench.watch import There
from sparkserve.commands import Command, Safety
from sparkserve.deploy import way as deploying
from sparkserve.deploy.plan import DeployPlan, Member
from sparkserve.deploy.state import Deployment, State
from sparkserve.drift import fleet as drifts
from sparkserve.drift import resolve
from sparkserve.drift.report import Report
from sparkserve.errors import SparkserveError
from sparkserve.fleet import plans
from sparkserve.local import fleets
from sparkserve.reach import afar, health
from sparkserve.reach.afar import Afar
from sparkserve.reach.health import Health
from sparkserve.reach.rows import Missing
from sparkserve.runner import Recorded, Result, failed
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FLEET = "tp3-triangle"
FOUND = [plan.load(file) for file in sorted((GOLDEN.parent / FLEET).glob("*.json"))]
NODES = [each.node.name for each in FOUND]
HEAD = NODES[0]
CLOSURE = "/nix/store/00000000000000000000000000000000-host"


class World(Recorded):
    """Three Sparks. `away` do not answer; `plans` are what is current on each; `state` is the group's."""

    def __init__(self) -> None:
        super().__init__()
        self.away: set[str] = set()
        self.hung: set[str] = set()
        self.plans: dict[str, str] = {each.node.name: each.model_dump_json() for each in FOUND}
        self.state = "up"
        self.units = dict.fromkeys(NODES, "active")
        self.deployed: dict[str, State] = {}
        self.forwarded: list[int] = []

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        result = super().run(node, command, feed=feed)
        if node in self.away:
            raise unreachable(node)
        if node in self.hung:
            raise failed(node, command, "no end after 10 s")
        return self._answer(node, command) or result

    def _answer(self, node: str, command: Command) -> Result | None:
        if command.argv == commands.read_closures(commands.PROFILE).argv:
            return Result(0, f"{self.plans[node]}\0{{}}\0[]\0")
        if command == commands.held("deploy"):
            return Result(0, f"{CLOSURE}\n") if node in self.deployed else Result(1)
        if command.argv[1:4] == ("deploy", "member", "look"):
            return Result(0, self.deployed[node].model_dump_json(by_alias=True))
        if command == commands.look():
            look = rows.looks(rows.status(self.state, fleet=FLEET))[node]
            assert not isinstance(look, Missing)
            stopped = {"unit": "inactive", "group": None}
            return Result(
                0, look.model_copy(update=stopped if self.units[node] != "active" else {}).model_dump_json()
            )
        if command.argv[:2] == ("systemctl", "show"):
            return Result(0, "\n\n".join([f"ActiveState={self.units[node]}"] * len(command.argv[3:])))
        if command.argv[3:4] == ("stop",) and command.safety == Safety.STOPS_SERVING:
            self.units[node] = "inactive"
        if command in [commands.start_units(*each) for each in rollout.units(NODES).values()]:
            self.units[node] = "active"
        for word, state in (("stop", "down"), ("start", "up")):
            if command == commands.ask_group(word):
                self.state = state
                return Result(0, rows.status(state).model_dump_json())
        if command.argv[1:3] == ("rank", "log"):
            return Result(0, entries(f"{node} says a", f"{node} says b"))
        if command.argv[1:3] == ("rank", "drift"):
            report = Report(
                schema="sparkserve.drift/1", node=node, closure=CLOSURE, generation=3, fleet_id="f" * 64,
                engine=7, checked={}, differences=(), facts={},
            )  # fmt: skip
            return Result(0, report.model_dump_json(by_alias=True))
        return None

    def changed(self) -> list[tuple[str, str]]:
        """What was asked that ends a serving group."""
        ends = [
            commands.ask_group("stop"),
            *(commands.stop_units(*each) for each in rollout.units(NODES).values()),
        ]
        return [(node, line) for node, line in self.asked if line in [command.line() for command in ends]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    (tmp_path / "hosts" / FLEET).mkdir(parents=True)
    (tmp_path / "hosts" / FLEET / "fleet.nix").write_text("{ }")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(plans, "load", lambda name: FOUND)

    def connect(self: Afar, allow: Safety = Safety.READS_HOSTS) -> World:
        made.allow = allow
        return made

    @contextmanager
    def endpoint(self: Afar, serving: plan.Serving) -> Iterator[str]:
        if HEAD in made.away:
            raise unreachable(HEAD)
        made.forwarded.append(serving.port)
        yield "http://127.0.0.1:5"

    def ask(url: str) -> Health:
        assert url == "http://127.0.0.1:5"
        return rows.OK if made.state == "up" else Health("down", "the group is down")

    monkeypatch.setattr(Afar, "connect", connect)
    monkeypatch.setattr(Afar, "endpoint", endpoint)
    monkeypatch.setattr(health, "ask", ask)
    return made


def test_sparks_are_asked_over_ssh(world: World) -> None:
    found = fleets.find(FLEET).report()
    assert [(row["node"], row["state"]) for row in found] == [(node, "ready") for node in NODES]
    assert world.forwarded == [8888]
    serving = fleets.find(FLEET).serving()
    assert (serving.state, serving.endpoint) == ("ready", "http://127.0.0.1:5")
    assert fleets.ready(FLEET)[0].plan().engine.package == "engine-gb10"


def test_a_laptop_fleet_that_was_never_up_is_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "load", lambda name: PLANS)
    there = fleets.find(FLEET)
    assert there.report() == [] and not world.asked
    assert there.advice("stopped") == f"Start it with: ./sparkserve up --fleet {FLEET}."
    with pytest.raises(SparkserveError, match=r"ENGINE\.STATE: expected the laptop fleet .* to be up"):
        deploying.to(FLEET)


def test_what_serves_is_what_the_head_says_and_not_what_the_files_say_now(world: World) -> None:
    runs = FOUND[0].model_dump(mode="json")
    runs["serving"] |= {"port": 9000, "model": "another"}
    world.plans[HEAD] = json.dumps(runs)
    found = fleets.find(FLEET)
    assert {(row["endpoint"], row["model"]) for row in found.report()} == {
        ("http://127.0.0.1:9000", "another")
    }
    assert world.forwarded == [9000]
    assert (found.plan().serving.port, found.serving().model) == (9000, "another")


@pytest.mark.parametrize("gone", NODES)
def test_a_node_that_does_not_answer_is_a_row(world: World, gone: str) -> None:
    world.away.add(gone)
    there = fleets.find(FLEET)
    found = {row["node"]: row for row in there.report()}
    assert (found[gone]["state"], found[gone]["reason"].split(";")[0]) == ("unreachable", "no route")
    others = {row["state"] for node, row in found.items() if node != gone}
    assert others == ({"lost"} if gone == HEAD else {"ready"})
    assert "is on and" not in there.advice("unreachable")  # who knows
    if gone == HEAD:
        with pytest.raises(SparkserveError, match=r"found it is unreachable: no route"):
            fleets.ready(FLEET)


def test_nodes_of_another_fleet_are_not_taken_for_these(world: World) -> None:
    world.plans = {each.node.name: each.model_dump_json() for each in PLANS}
    asks: list[Any] = [
        lambda there: there.report(),
        lambda there: there.serving(),
        lambda there: list(there.logs(1, follow=False, part="engine", node=None)),
        lambda there: drifts.of_fleet(there.name, live=True, deep=False),
        lambda there: resolve.resolve("3", there.name),
        lambda there: there.take_down(),
    ]
    for ask in asks:
        with pytest.raises(SparkserveError, match="found one of the fleet local-triangle") as caught:
            ask(fleets.find(FLEET))
        assert (caught.value.id, caught.value.do.split(".")[0]) == ("ENGINE.STATE", "To see that one: ")
    assert world.changed() == []


def test_logs_and_verify(world: World) -> None:
    there = fleets.find(FLEET)
    lines = list(there.logs(2, follow=False, part="engine", node=None))
    assert lines == [f"{node} | {node} says {word}" for node in NODES for word in "ab"]
    assert list(there.logs(2, follow=False, part="engine", node="spark-1")) == [
        "spark-1 says a",
        "spark-1 says b",
    ]
    with pytest.raises(SparkserveError, match="one of the nodes spark-0, spark-1, spark-2; found spark-9"):
        list(there.logs(2, follow=False, part="engine", node="spark-9"))
    assert list(drifts.of_fleet(FLEET, live=True, deep=False).reports) == NODES
    world.away.add("spark-1")
    found = drifts.of_fleet(FLEET, live=True, deep=False)
    assert (list(found.reports), found.silent["spark-1"].found) == (["spark-0", "spark-2"], "no route")


def test_a_generation_is_one_of_the_node_that_is_named(world: World) -> None:
    for node in (None, "spark-2"):
        with pytest.raises(SparkserveError):  # it has none: nobody answers here
            resolve.resolve("3", FLEET, node)
        assert world.asked[-1] == (node or HEAD, commands.generations().line())


def test_down_drains_and_stops_and_powers_nothing_off(world: World) -> None:
    assert fleets.take_down(FLEET) is True
    ended = world.changed()
    assert ended[0] == (HEAD, commands.ask_group("stop").line())
    assert sorted(ended[1:]) == [
        (HEAD, commands.stop_units(rollout.RANK, rollout.FRONT).line()),
        *((node, commands.stop_units(rollout.RANK).line()) for node in NODES[1:]),
    ]
    assert not [line for _, line in world.asked if "poweroff" in line or "reboot" in line]
    there = fleets.find(FLEET)
    assert [row["state"] for row in there.report()] == ["stopped"] * 3
    assert f"./sparkserve deploy --apply --fleet {FLEET} starts" in there.advice("stopped")
    assert fleets.take_down(FLEET) is False


@pytest.mark.parametrize("how", ["away", "hung"])
def test_down_stops_the_others_and_names_who_is_away(world: World, how: str) -> None:
    getattr(world, how).add("spark-1")
    with pytest.raises(SparkserveError) as caught:
        fleets.take_down(FLEET)
    assert (caught.value.id, caught.value.where) == ("NODE.UNREACHABLE", "spark-1")
    assert world.units == {"spark-0": "inactive", "spark-1": "active", "spark-2": "inactive"}


def test_down_refuses_while_a_deployment_is_open(world: World) -> None:
    member = Member(name="spark-1", base=None, target=CLOSURE, bytes=1)
    made = DeployPlan(fleet=FLEET, members=(member,), base_fleet_id=None, target_fleet_id="0")
    now = Deployment(id=made.id, epoch=1, plan=made, deployer="somebody", since="today")
    world.deployed = {"spark-1": State(open=now)}
    with pytest.raises(SparkserveError, match="by somebody since today"):
        fleets.take_down(FLEET)
    assert world.changed() == []


@pytest.mark.parametrize("change", ["none", "another fleet", "another version"])
def test_a_deployment_asks_what_is_current_whatever_it_is(
    world: World, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an undo to what another fleet had there would never end."""
    before = FOUND[0].model_dump(mode="json")
    before["serving"]["port"] = 9000
    if change == "another fleet":
        before["fleet"]["name"] = "home"
    if change == "another version":
        before["proofs"] = before.pop("gates")
    closure = {"fleet_id": "0" * 64}
    read = commands.read_closures(commands.PROFILE)
    monkeypatch.setattr(
        world,
        "_answer",
        lambda node, command: (
            Result(0, f"{json.dumps(before)}\0{json.dumps(closure)}\0[]\0") if command == read else None
        ),
    )
    asked: list[str] = []
    monkeypatch.setattr(health, "wait", lambda endpoint, fleet: asked.append(fleet))
    deploying.Way(FOUND[0], Afar(FOUND[0])).healthy()
    assert (world.forwarded, asked) == ([9000], [FLEET])


def test_up_names_deploy(world: World) -> None:
    with pytest.raises(
        SparkserveError, match=r"/dev/nvidia0.*\./sparkserve deploy --fleet tp3-triangle"
    ) as caught:
        fleets.bring_up(FLEET)
    assert (caught.value.id, world.asked) == ("FLEET.OPTION", [])


def test_the_bench_watches_and_restarts_the_sparks_and_not_this_machine(world: World) -> None:
    place = places.Fleet(FLEET)
    source = place.source(None)  # type: ignore[arg-type]
    assert isinstance(source, There) and source.names == tuple(NODES)
    place.restart()
    assert (world.state, set(world.units.values())) == ("up", {"active"})
    assert world.changed()[0] == (HEAD, commands.ask_group("stop").line())
    assert (HEAD, commands.ask_group("start").line()) in world.asked


def test_files_that_do_not_evaluate_hide_no_sparks(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SparkserveError(
        "FLEET.EVAL", expected="Nix", found="a typo", where="fleet.nix", do="Correct it."
    )

    def load(name: str) -> None:
        raise broken

    monkeypatch.setattr(plans, "load", load)
    for ask in (fleets.find, fleets.with_logs, fleets.take_down):
        with pytest.raises(SparkserveError) as caught:
            ask(FLEET)
        assert caught.value is broken
    # What it left on this machine can be read all the same, and it is said that this is not all.
    log = tmp_path / ".sparkserve/log" / FLEET / "spark-0.log"
    log.parent.mkdir(parents=True)
    log.write_text("a\n")
    assert list(fleets.with_logs(FLEET).logs(1, follow=False, part="engine", node=None)) == ["a"]
    assert "Nothing but this machine is looked at: FLEET.EVAL" in capsys.readouterr().err
    with pytest.raises(SparkserveError) as caught:
        fleets.take_down(FLEET)  # they may serve
    assert caught.value is broken


def test_a_node_asks_for_its_own_fleet(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKSERVE_CHECKOUT")
    monkeypatch.chdir(tmp_path / "hosts")
    monkeypatch.setattr(afar, "from_node", lambda: Afar(FOUND[1], own="spark-1"))
    there = fleets.find("local-triangle")  # the default, which nobody named
    assert (there.name, [row["state"] for row in there.report()]) == (FLEET, ["ready"] * 3)
    with pytest.raises(SparkserveError, match=f"expected {FLEET}, the fleet of this node; found tp4-ring"):
        fleets.find("tp4-ring")
