"""The commands for a fleet of several nodes, with nodes that only the tests know of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import test_reach_rows as rows
from local_values import PLANS

from sparkserve import commands, disk
from sparkserve.commands import Command, Safety
from sparkserve.deploy.plan import DeployPlan, Member
from sparkserve.deploy.state import Deployment, State
from sparkserve.errors import SparkserveError
from sparkserve.fleet import plans
from sparkserve.local import fleets, lock, names, namespaces, power, several, triangle
from sparkserve.local.boot import DEFAULT_SIZES
from sparkserve.local.cgroups import Cgroups
from sparkserve.local.record import Fleet
from sparkserve.local.tools import Tools
from sparkserve.reach import health
from sparkserve.reach.health import Health
from sparkserve.reach.rows import Missing
from sparkserve.runner import Recorded, Result
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.plan import Plan

FLEET = PLANS[0].fleet.name
NODES = [plan.node.name for plan in PLANS]
CLOSURE = "/nix/store/00000000000000000000000000000000-host"
DOWN = Health("down", "the group is down")


class World(Recorded):
    """Three nodes: which are on, what each one's profile names, and whether the group is up.

    `fails` has the first words of commands that fail, each with the error to raise or the result.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on: set[str] = set()
        self.downs = 0
        self.state = "down"
        self.profile: dict[str, str] = {}
        self.fails: dict[str, BaseException | Result] = {}
        self.power_fails: BaseException | None = None
        self.health_fails: BaseException | None = None
        self.health = DOWN
        self.deployed: dict[str, State] = {}

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        result = super().run(node, command, feed=feed)
        line = command.line()
        for begin, how in self.fails.items():
            if begin in line:
                if isinstance(how, BaseException):
                    raise how
                return how
        if node not in self.on:
            raise unreachable(node)
        return self._answer(node, command) or result

    def _answer(self, node: str, command: Command) -> Result | None:
        if command == commands.held("deploy"):
            return Result(0, f"{CLOSURE}\n") if node in self.deployed else Result(1)
        if command.argv[1:4] == ("deploy", "member", "look"):
            return Result(0, self.deployed[node].model_dump_json(by_alias=True))
        if command == commands.current():
            return Result(0, self.profile.get(node, ""))
        if command.argv[3:4] == ("current",):
            self.profile[node] = command.argv[5]
        if command.argv[:2] == ("systemctl", "show"):
            unit = f"ActiveState=active\nExecStart={{ path={self.profile.get(node)}/bin/sparkserve }}"
            return Result(0, "\n\n".join([unit] * len(command.argv[3:])))
        if command == commands.ask_group("start"):
            self.state, self.health = "up", rows.OK
        if command == commands.ask_group("stop"):
            self.state, self.health = "down", DOWN
        if command.argv[1:3] == ("rank", "ask"):
            return Result(0, rows.status(self.state).model_dump_json())
        if command == commands.look():
            look = rows.looks(rows.status(self.state))[node]
            assert not isinstance(look, Missing)
            return Result(0, look.model_dump_json())
        if command.argv[1:3] == ("rank", "log"):
            return Result(0, entries(f"{node} says a", f"{node} says b"))
        if command == commands.unverified(CLOSURE):
            return Result(0, f"{CLOSURE}\n")
        if command.argv[0] == "journalctl":
            return Result(0, entries(f"{node}: {command.argv[4]}"))
        return None


def entries(*texts: str) -> str:
    return "".join(json.dumps({"__CURSOR": str(n), "MESSAGE": text}) + "\n" for n, text in enumerate(texts))


def unreachable(node: str) -> SparkserveError:
    return SparkserveError("NODE.UNREACHABLE", expected="a login", found="no route", where=node, do="Look.")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    (tmp_path / "hosts" / FLEET).mkdir(parents=True)
    (tmp_path / "hosts" / FLEET / "fleet.nix").write_text("{ }")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(plans, "load", lambda fleet: PLANS)
    mine = names.Names(FLEET, tmp_path / "local")
    fleet = Fleet(mine, tuple(PLANS), tmp_path, Tools(tmp_path), DEFAULT_SIZES, Cgroups(()))

    def power_on(plans: Sequence[Plan]) -> Fleet:
        if made.power_fails:
            raise made.power_fails
        made.on |= set(NODES)
        return fleet

    def down(name: str) -> bool:
        made.on.clear()
        made.downs += 1
        return True

    def load(name: str) -> Fleet:
        if not made.on:
            raise SparkserveError("ENGINE.STATE", expected="it up", found="no nodes", where=name, do="Up.")
        return fleet

    def wait(endpoint: str, fleet: str) -> None:
        if made.health_fails:
            raise made.health_fails

    def connect(fleet: Fleet, allow: Safety = Safety.READS_HOSTS) -> World:
        made.allow = allow
        return made

    monkeypatch.setattr(several, "connect", connect)
    monkeypatch.setattr(several, "build", lambda found, seconds: dict.fromkeys(NODES, CLOSURE))
    monkeypatch.setattr(namespaces, "check", lambda: None)
    monkeypatch.setattr(triangle, "check", lambda found: None)
    monkeypatch.setattr(disk, "check", lambda state: None)
    monkeypatch.setattr(triangle, "power_on", power_on)
    monkeypatch.setattr(triangle, "down", down)
    monkeypatch.setattr(triangle, "load", load)
    monkeypatch.setattr(triangle, "exists", lambda name: bool(made.on))
    monkeypatch.setattr(power, "init", lambda fleet, node: node in made.on or None)
    monkeypatch.setattr(health, "ask", lambda endpoint: made.health)
    monkeypatch.setattr(health, "wait", wait)
    return made


def served(world: World) -> None:
    several.bring_up(PLANS)
    world.asked.clear()


def stops(world: World) -> list[tuple[str, str]]:
    """What was asked that ends a serving group."""
    stopping = (commands.ask_group("stop"), commands.stop_units(rollout.RANK))
    assert all(command.safety == Safety.STOPS_SERVING for command in stopping)
    return [(node, line) for node, line in world.asked if line in [command.line() for command in stopping]]


def test_up_from_nothing(world: World) -> None:
    done = several.bring_up(PLANS)
    assert (done.model, done.already, done.pid) == ("smollm2-135m", False, None)
    assert done.endpoint == PLANS[0].serving.endpoint
    assert set(done.seconds) == {"nodes", "copy", "ready"}
    assert world.profile == dict.fromkeys(NODES, CLOSURE)
    assert (world.state, world.downs) == ("up", 0)


def test_up_again_changes_nothing(world: World) -> None:
    served(world)
    assert several.bring_up(PLANS).already is True
    assert stops(world) == []
    assert not [line for _, line in world.asked if "activate" in line]


def test_up_brings_a_node_back(world: World) -> None:
    served(world)
    world.on.discard("spark-1")
    world.state = "down"
    done = several.bring_up(PLANS)
    assert (world.on, world.state, done.already) == (set(NODES), "up", False)


WRONG = SparkserveError("HOST.SYSTEM", expected="it", found="another", where="there", do="Look.")
PHASES: Mapping[str, dict[str, Any]] = {
    "power": {"power_fails": WRONG},
    "copy": {"fails": {"nix copy": Result(1, "", "disk full")}},
    "verify": {"fails": {"store verify": Result(1, "", "out of memory")}},
    "activate": {"fails": {"bin/activate": Result(1, "", "an engine runs")}},
    "units": {"fails": {"systemctl start": Result(1, "", "failed")}},
    "start": {"fails": {"rank ask /nix/var/nix/profiles/sparkserve start": Result(54, "", "no controller")}},
    "answer": {"health_fails": WRONG},
    "Ctrl-C": {"fails": {"nix copy": KeyboardInterrupt()}},
    "Ctrl-C late": {"health_fails": KeyboardInterrupt()},
}


@pytest.mark.parametrize("phase", PHASES)
def test_an_error_leaves_no_node_that_was_not_there(world: World, phase: str) -> None:
    for name, value in PHASES[phase].items():
        setattr(world, name, value)
    with pytest.raises((SparkserveError, KeyboardInterrupt)):
        several.bring_up(PLANS)
    assert (world.on, world.downs) == (set(), 1)


@pytest.mark.parametrize("phase", PHASES)
def test_an_error_leaves_nodes_on_that_were_on(world: World, phase: str) -> None:
    served(world)
    if phase not in ("copy", "verify", "Ctrl-C", "power"):
        world.profile = dict.fromkeys(NODES, "/nix/store/11111111111111111111111111111111-old")
    for name, value in PHASES[phase].items():
        setattr(world, name, value)
    with pytest.raises((SparkserveError, KeyboardInterrupt)):
        several.bring_up(PLANS)
    assert (world.on, world.downs) == (set(NODES), 0)


@pytest.mark.parametrize("phase", ["power", "copy", "verify", "Ctrl-C"])
def test_what_served_goes_on_until_all_is_copied_and_verified(world: World, phase: str) -> None:
    served(world)
    world.profile = dict.fromkeys(NODES, "/nix/store/11111111111111111111111111111111-old")
    for name, value in PHASES[phase].items():
        setattr(world, name, value)
    with pytest.raises((SparkserveError, KeyboardInterrupt)):
        several.bring_up(PLANS)
    assert (stops(world), world.state) == ([], "up")


def test_up_refuses_while_a_deployment_is_open(world: World) -> None:
    served(world)
    world.profile["spark-1"] = "/nix/store/11111111111111111111111111111111-old"
    member = Member(name="spark-1", base=None, target=CLOSURE, bytes=1)
    plan = DeployPlan(fleet=FLEET, members=(member,), base_fleet_id=None, target_fleet_id="0")
    now = Deployment(id=plan.id, epoch=1, plan=plan, deployer="somebody", since="today")
    world.deployed = {"spark-1": State(open=now)}
    with pytest.raises(SparkserveError, match="by somebody since today") as caught:
        several.bring_up(PLANS)
    assert (caught.value.id, caught.value.where) == ("DEPLOY.LEASE", "spark-1")
    assert (stops(world), world.state) == ([], "up")
    assert not [line for _, line in world.asked if "nix copy" in line or "activate" in line]
    world.on.clear()
    with pytest.raises(SparkserveError, match="deploy --resume"):
        several.bring_up(PLANS)
    assert (world.on, world.downs) == (set(NODES), 0)  # else nothing could resume it
    world.deployed = {"spark-1": State()}  # its hold is left of one that has ended
    assert several.bring_up(PLANS).already is False


def test_a_build_that_fails_touches_no_node(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(found: object, seconds: object) -> None:
        raise WRONG

    monkeypatch.setattr(several, "build", fails)
    with pytest.raises(SparkserveError):
        several.bring_up(PLANS)
    assert (world.downs, world.asked) == (0, [])


def test_the_logs_of_a_failed_start_outlive_its_nodes(world: World) -> None:
    world.health_fails = WRONG
    with pytest.raises(SparkserveError):
        several.bring_up(PLANS)
    found = fleets.find(FLEET)
    assert found.report() == [{"node": node, "state": "stopped"} for node in NODES]
    lines = list(found.logs(2, follow=False, part="engine", node=None))
    assert lines == [
        line
        for node in NODES
        for line in (
            f"{node} | {node} says b",
            f"{node} | supervisor: {node}: --unit=sparkserve-rank.service",
        )
    ]
    assert list(found.logs(1, follow=False, part="engine", node="spark-1")) == [
        "supervisor: spark-1: --unit=sparkserve-rank.service"
    ]
    with pytest.raises(SparkserveError, match="nodes that are down"):
        list(found.logs(2, follow=True, part="engine", node=None))
    with pytest.raises(SparkserveError, match="its front is on nodes, which are not on"):
        list(found.logs(2, follow=False, part="front", node=None))


def test_down_drains_then_powers_off_and_keeps_the_logs(world: World) -> None:
    served(world)
    assert fleets.take_down(FLEET) is True
    assert (world.on, world.downs, world.state) == (set(), 1, "down")
    assert stops(world)[0] == ("spark-0", commands.ask_group("stop").line())
    assert "spark-2 | spark-2 says a" in list(
        fleets.find(FLEET).logs(9, follow=False, part="engine", node=None)
    )
    assert fleets.take_down(FLEET) is False
    assert world.downs == 1


@pytest.mark.parametrize("left", ["no record", "a node that does not answer"])
def test_down_ends_what_is_half_made(
    world: World, left: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served(world)
    if left == "no record":
        damaged = SparkserveError("ENGINE.STATE", expected="it", found="damage", where="x", do="Down.")
        monkeypatch.setattr(triangle, "load", lambda name: (_ for _ in ()).throw(damaged))
    else:
        world.on.discard("spark-1")
    assert fleets.take_down(FLEET) is True
    assert (world.on, world.downs) == (set(), 1)
    assert "Not drained: " in capsys.readouterr().err
    if left == "a node that does not answer":
        kept = list(fleets.find(FLEET).logs(1, follow=False, part="engine", node="spark-1"))
        assert kept[0].startswith("The log could not be fetched: ")
        assert "spark-0 | spark-0 says a" in list(
            fleets.find(FLEET).logs(9, follow=False, part="engine", node=None)
        )


def test_down_that_waited_for_an_up_ends_what_it_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Held:
        def __enter__(self) -> None:
            world.on |= set(NODES)  # the `up` that had the lock

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(lock, "held", lambda state, fleet: Held())
    assert fleets.take_down(FLEET) is True
    assert world.on == set()


def test_status_names_what_is_lost(world: World) -> None:
    served(world)
    assert [row["state"] for row in fleets.find(FLEET).report()] == ["ready"] * 3
    assert {line for _, line in world.asked} == {commands.look().line()}  # one round
    world.fails = {"rank look": unreachable("x")}
    found = fleets.find(FLEET).report()
    assert [(row["state"], row["reason"]) for row in found] == [("unreachable", "no route")] * 3
    world.fails = {}
    world.on.discard("spark-2")
    assert [row["state"] for row in fleets.find(FLEET).report()] == ["ready", "ready", "off"]
    world.fails = {"rank look": Result(2, "", "No such command 'look'.")}
    row = fleets.find(FLEET).report()[0]
    assert (row["state"], row["reason"]) == (
        "lost",
        "it has no sparkserve of this version (No such command 'look'.)",
    )
    world.fails = {"rank look": Result(0, "{}")}
    assert "no sparkserve of this version" in fleets.find(FLEET).report()[0]["reason"]


def test_who_serves_is_the_front_s_word(world: World) -> None:
    served(world)
    serving = fleets.find(FLEET).serving()
    assert (serving.state, serving.endpoint) == ("ready", PLANS[0].serving.endpoint)
    world.on.discard("spark-2")  # its rank may serve on
    assert fleets.find(FLEET).serving().state == "ready"
    world.health = Health("silent", "no token")
    assert fleets.find(FLEET).serving()[:2] == ("silent", "no token")
    world.health = Health("", "no answer")
    assert fleets.find(FLEET).serving()[:2] == ("silent", "no answer")
    assert all(state in fleets.ADVICE for state in ("silent", "proving", "starting", "draining", "down"))


def test_who_asks_an_endpoint_with_keys_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = PLANS[0].serving.model_copy(update={"api_key_file": "/etc/k"})
    keyed = [plan.model_copy(update={"serving": serving}) for plan in PLANS]
    monkeypatch.setattr(several.Here, "head", keyed[0])
    assert several.bring_up(keyed).keyed is True
    assert fleets.find(FLEET).serving().key_file == Path("/etc/k")
    assert several.bring_up(PLANS).keyed is False


def test_logs_of_nodes(world: World) -> None:
    served(world)
    found = fleets.find(FLEET)
    assert list(found.logs(9, follow=False, part="engine", node=None))[1:3] == [
        "spark-0 | spark-0 says b",
        "spark-1 | spark-1 says a",
    ]
    assert list(found.logs(9, follow=False, part="supervisor", node="spark-1")) == [
        "spark-1: --unit=sparkserve-rank.service"
    ]
    assert list(found.logs(9, follow=False, part="front", node=None)) == [
        "spark-0: --unit=sparkserve-front.service"
    ]
    with pytest.raises(SparkserveError, match="one of the nodes spark-0, spark-1, spark-2; found spark-9"):
        list(found.logs(9, follow=False, part="engine", node="spark-9"))


def test_logs_of_the_others_come_before_the_error(world: World) -> None:
    served(world)
    world.on.discard("spark-0")
    lines = []
    with pytest.raises(SparkserveError, match="where: spark-0"):
        for line in fleets.find(FLEET).logs(1, follow=False, part="engine", node=None):
            lines.append(line)
    assert [line.split()[0] for line in lines] == ["spark-1", "spark-1", "spark-2", "spark-2"]


def test_every_state_has_advice() -> None:
    assert {"off", "unreachable", "lost"} <= set(fleets.ADVICE)
