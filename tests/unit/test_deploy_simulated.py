"""A thousand deployments with faults: afterwards all nodes have one fleet id, and nothing is open.

Each seed chooses what was there before, what the deployment meets, and where: the deployer is killed, an
answer or a command is lost or comes late, a node loses its power with what it had not written, or does not
answer for a while; the target does not activate, does not come up or fails its gates; another deployer
resumes or begins in between, or at the same time. Then everything is mended and resumed.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from deploy_world import NODES, World, plan_to
from simulated_deployer import Deployer, Way
from simulated_node import KilledError, closure, unreachable, version_of

from sparkserve.commands import Safety
from sparkserve.deploy import members, resume, transaction
from sparkserve.deploy.history import History
from sparkserve.errors import SparkserveError
from sparkserve.runner import Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simulated_node import Node

    from sparkserve.commands import Command

SEEDS = 1000
FIRST = int(os.environ.get("DEPLOY_SEED", "0"))


class Faults:
    """What happens at which call."""

    def __init__(self, world: World, random_: random.Random, folder: Path) -> None:
        self.world, self.random, self.folder = world, random_, folder
        # 150 calls or so are a whole deployment; more faults than one meet its undo and its resumes.
        count = random_.choice([0, 1, 1, 1, 2, 3])
        self.at = {random_.randrange(160): self.random.choice(self.KINDS) for _ in range(count)}
        self.calls = 0
        self.late: list[Callable[[], Result]] = []
        self.told: list[str] = []

    KINDS = (
        *("killed", "killed after", "lost", "answer lost", "late", "power", "power inside", "away"),
        *("Ctrl-C", "full", "fails", "resumed", "resumed in part", "rival"),
    )

    def __call__(self, node: Node, command: Command, do: Callable[[], Result]) -> Result:
        kind = self.at.pop(self.calls, "")
        self.calls += 1
        if self.late and self.random.random() < 0.2:
            with suppress(SparkserveError):
                self.late.pop()()
        if kind:
            self.told.append(f"{kind} at {node.name}")
        match kind:
            case "killed":
                raise KilledError
            case "Ctrl-C":
                raise KeyboardInterrupt
            case "killed after":
                with suppress(SparkserveError):
                    do()
                raise KilledError
            case "lost":
                raise unreachable(node.name)
            case "answer lost":
                do()
                raise unreachable(node.name)
            case "late":
                self.late.append(do)
                raise unreachable(node.name)
            case "power":
                if self.random.random() < 0.5:
                    do()
                node.power_off()
                raise unreachable(node.name)
            case "power inside":
                node.cut_at = self.random.randrange(6)
            case "full":
                node.full = self.random.randrange(1, 30)
            case "fails" if command.safety > Safety.READS_HOSTS:
                return Result(1, "", "No space left on device")
            case "away":
                node.away = self.random.randrange(1, 12)
                raise unreachable(node.name)
            case "resumed" | "resumed in part":
                if kind == "resumed in part":
                    self.at[self.calls + self.random.randrange(5, 40)] = "killed"
                self._beside(lambda way: resume.resume(way.connect(), NODES, members.deployer(), way.healthy))
            case "rival":
                history = History(self.folder / f"rival-{self.calls}")
                self._beside(lambda way: transaction.run(way, plan_to(self.world, "c"), history))
        return do()

    def mend(self) -> None:
        """All nodes are back, and nothing is on its way any more."""
        self.at.clear()
        self.world.turns.end()
        for late in self.late:
            with suppress(SparkserveError):
                late()
        self.late.clear()
        for node in self.world.nodes.values():
            node.cut_at, node.away, node.full = None, 0, 0
            node.power_on()

    def _beside(self, what: Callable[[Way], object]) -> None:
        """Another deployer does it: all of it now, or at the same time as whatever else there is."""
        way = Way(self.world, f"beside {self.calls}")

        def work() -> None:
            with suppress(SparkserveError, KilledError, KeyboardInterrupt):
                what(way)

        if self.random.random() < 0.5:
            work()
        else:
            self.world.turns.beside(work)


def before(world: World, random_: random.Random) -> str:
    """What was there: nothing, something that serves, something stopped, or the target, put there by `up`."""
    kind = random_.choice(["serves", "serves", "serves", "stopped", "nothing", "experimental"])
    version = {"nothing": None, "experimental": "b"}.get(kind, "a")
    for name, node in world.nodes.items():
        if version:
            node.set_profile(closure(name, version))
            node.activate(closure(name, version))
            node.sync()
            node.start()
    world.wanted = kind in ("serves", "experimental")
    return kind


def obstacles(world: World, random_: random.Random) -> bool:
    """What is wrong with the target; whether its gates pass."""
    kind = random_.choice(["", "", "", "gates", "starts", "activates", "reboot"])
    node = world.nodes[random_.choice(NODES)]
    node.reboot_for = "b" if kind == "reboot" else ""
    # What ran before activates also on the way back.
    node.refuses = "b" if kind == "activates" and version_of(node.path) != "b" else ""
    world.broken = "b" if kind == "starts" else ""
    return kind != "gates"


def check(world: World, kind: str) -> None:
    """What must hold when all is mended and resumed."""
    heads = world.nodes["spark-0"].member.look()
    for node in world.nodes.values():
        state = node.member.look()
        assert state.open is None, f"{node.name} has an open deployment"
        assert node.activated == node.path, f"{node.name} runs {node.activated}, its profile says {node.path}"
        for past in state.past:
            decided = [each.outcome for each in heads.past if each.id == past.id]
            assert past.outcome in decided, (
                f"{node.name} ended {past.id} with {past.outcome}, the head {decided}"
            )
        assert not any(
            later in node.changed_by[:at] and later != node.changed_by[at - 1]
            for at, later in enumerate(node.changed_by)
            if at
        ), f"{node.name} was changed by turns: {node.changed_by}"
    versions = {version_of(node.path) for node in world.nodes.values()}
    assert len(versions) == 1, f"fleet ids {versions}"
    if world.up is not None:
        assert versions == {world.up}
    if kind == "serves":
        assert world.up is not None, "what served before does not"


@pytest.mark.parametrize("block", range(10))
def test_after_any_fault_all_nodes_are_one_again(tmp_path: Path, block: int) -> None:
    for number in range(SEEDS // 10):
        seed = FIRST + block * SEEDS // 10 + number
        try:
            simulate(tmp_path / str(number), seed)
        except BaseException:
            print(f"seed {seed}: DEPLOY_SEED={seed} repeats it first")
            raise


def simulate(folder: Path, seed: int) -> str:
    """One deployment with what the seed chooses; how it went for who began it."""
    random_ = random.Random(seed)  # noqa: S311 - no secret
    world = World(folder, random_)
    with world.played():
        return _simulate(world, random_, folder)


def _simulate(world: World, random_: random.Random, folder: Path) -> str:
    kind = before(world, random_)
    proves = obstacles(world, random_)
    faults = Faults(world, random_, folder)
    world.fault = faults
    plan = plan_to(world, "b")
    try:
        transaction.run(Way(world, "first", proves=proves), plan, History(folder / "first"))
        outcome = "keep"
    except SparkserveError as error:
        outcome = error.id
    except (KilledError, KeyboardInterrupt) as error:
        outcome = type(error).__name__
    # What the deployer says must be so at once.
    claimed = {"keep": "b", "DEPLOY.UNDONE": plan.base_fleet_id}
    if outcome in claimed and world.turns.alone:
        for node in world.nodes.values():
            assert version_of(node.path) == claimed[outcome], f"{node.name} is not as after {outcome}"
            # But for a `begin` that came late, with which nothing was done, and which a resume ends.
            now = node.seen().open
            assert now is None or now.id != plan.id or not now.steps, f"{node.name} is open after {outcome}"
    for attempt in range(6):
        if attempt == 1:
            faults.mend()
        try:
            resume.resume(Deployer(world, f"resume {attempt}"), NODES, members.deployer(), lambda: None)
        except SparkserveError as error:
            if error.id == "DEPLOY.NOTHING" and attempt > 0:
                break
        except (KilledError, KeyboardInterrupt):
            pass
    else:
        raise AssertionError("a fleet that is mended is not resumed")
    check(world, kind)
    return outcome
