"""A node's side of a deployment, against a model: random commands, kills, power cuts; deployers that race."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import power_cuts
import pytest
from deploy_node import DeployNode, plan

from sparkserve.deploy.files import Files
from sparkserve.deploy.plan import Base
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.deploy.member import Member
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.state import State

CLOSURES = ("/nix/store/one", "/nix/store/two", "/nix/store/three")
DEPLOYERS = ("me", "you", "them")
STEPS = ("stopped", "activated", "switched")


def path_of(base: Base | None) -> str | None:
    return None if base is None else base.path


@dataclass(frozen=True)
class Open:
    """An open deployment as the model has it."""

    plan: DeployPlan
    epoch: int
    deployer: str
    steps: tuple[str, ...] = ()
    decided: str | None = None


@dataclass(frozen=True)
class Model:
    """What a node should know. `past` are ids, epochs, outcomes, paths, generations."""

    open: Open | None = None
    past: tuple[tuple[str, int, str, str | None, int | None], ...] = ()

    def same(self, state: State) -> bool:
        """Whether the node knows that."""
        now = state.open
        opened = now and Open(now.plan, now.epoch, now.deployer, now.steps, now.decided)
        past = tuple((each.id, each.epoch, each.outcome, each.path, each.generation) for each in state.past)
        return (opened, past) == (self.open, self.past)


@dataclass(frozen=True)
class Command:
    """One command: what it is called, who gives it with which id and epoch, and what it says."""

    verb: str
    plan: DeployPlan
    epoch: int
    who: str
    word: str

    def do(self, member: Member) -> State:
        """Give it."""
        match self.verb:
            case "begin":
                return member.begin(self.plan, self.who)
            case "take":
                return member.take(self.plan.id, self.epoch, self.who)
            case "note":
                return member.note(self.plan.id, self.epoch, self.word)
            case "decide":
                return member.decide(self.plan.id, self.epoch, "keep" if self.word == STEPS[0] else "undo")
            case "end":
                return member.end(self.plan.id, self.epoch)
        return member.look()

    def expected(self, model: Model, current: Base | None) -> Model | str:
        """What the node should know after it, or the id of the error."""
        now, last = model.open, model.past[-1] if model.past else None
        if self.verb == "look":
            return model
        if self.verb == "begin":
            if now is not None:
                return model if (now.plan.id, now.deployer) == (self.plan.id, self.who) else "DEPLOY.LEASE"
            if self.plan.head.base != current:
                return "DEPLOY.BASE"
            # No epoch is ever given twice.
            return replace(model, open=Open(self.plan, (last[1] if last else 0) + 1, self.who))
        if self.verb == "end" and now is None and last and last[:2] == (self.plan.id, self.epoch):
            return model
        if now is None or (now.plan.id, now.epoch) != (self.plan.id, self.epoch):
            return "DEPLOY.FENCED"
        match self.verb:
            case "take":
                return replace(model, open=replace(now, epoch=now.epoch + 1, deployer=self.who))
            case "note":
                steps = now.steps if self.word in now.steps else (*now.steps, self.word)
                return replace(model, open=replace(now, steps=steps))
            case "decide":
                outcome = "keep" if self.word == STEPS[0] else "undo"
                if now.decided not in (None, outcome):
                    return "DEPLOY.FENCED"
                return replace(model, open=replace(now, decided=outcome))
        if now.decided is None:
            return "DEPLOY.OPEN"
        head, path = now.plan.head, path_of(current)
        if path != (head.target if now.decided == "keep" else path_of(head.base)):
            return "DEPLOY.BASE"
        ended = (now.plan.id, now.epoch, now.decided, path, None if current is None else current.generation)
        return Model(None, (*model.past, ended))


class Killed(BaseException):
    """The end of a process, wherever it is."""


class World:
    """A node that random things happen to, and what it should know."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.node = DeployNode(folder / f"{seed}")
        for path in CLOSURES:
            self.node.closure(path.rpartition("/")[2])
        self.current: Base | None = None
        self.model = Model()
        self.plans: list[DeployPlan] = []
        self.kept: str | None = None  # the target of the last one that was kept
        self.events: dict[str, int] = {}

    def count(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def happen(self) -> None:
        """One of: the profile changes, the power is cut, a command, a command that is killed."""
        what = self.random.random()
        if what < 0.1 or (what < 0.4 and self.model.open is not None and self.model.open.decided):
            self._switch()
        elif what < 0.15:
            self.node.power_cut(self.random)
            self.count("power cut")
        elif what < 0.5:
            self._killed(self._command())
        else:
            self._whole(self._command())
        # Not by the node's own files, whose trace would then have a sync that a deployer does not make.
        assert self.model.same(self.node.with_files(power_cuts.Recording()).look())
        self._held()

    def _switch(self) -> None:
        now = self.model.open
        paths: list[str | None] = [*CLOSURES, None]
        if now is not None:
            paths = [now.plan.head.target, path_of(now.plan.head.base)]
        path = self.random.choice(paths)
        if path is None:
            self.node.forget()
        self.current = None if path is None else self.node.switch(path)

    def _command(self) -> Command:
        now = self.model.open
        if now is None or self.random.random() < 0.1 or not self.plans:
            stale = self.random.random() < 0.2
            base = Base(generation=99, path=CLOSURES[0]) if stale else self.current
            self.plans.append(plan(base, self.random.choice(CLOSURES)))
        right = self.random.random() < 0.8
        last = self.model.past[-1] if self.model.past else None
        planned = now.plan if now is not None and right else self.random.choice(self.plans[-4:])
        epoch = now.epoch if now is not None else last[1] if last else 1
        return Command(
            self.random.choice(("begin", "begin", "take", "note", "decide", "end", "end", "look")),
            planned,
            epoch if right else max(1, epoch + self.random.choice((-1, 1))),
            self.random.choice(DEPLOYERS),
            self.random.choice(STEPS),
        )

    def _whole(self, command: Command) -> None:
        expected = command.expected(self.model, self.current)
        if isinstance(expected, Model):
            assert expected.same(command.do(self.node.member)), command
            self._become(expected)
            self.count(command.verb)
        else:
            with pytest.raises(SparkserveError) as raised:
                command.do(self.node.member)
            assert raised.value.id == expected, command
            self.count(expected)

    def _killed(self, command: Command) -> None:
        """Kill it somewhere, perhaps by a power cut: then it was done, or was not."""
        expected = command.expected(self.model, self.current)
        where = self.random.randrange(8)
        with self.node.ending_at(where, Killed):
            try:
                command.do(self.node.member)
            except SparkserveError as error:
                assert error.id == expected
                return
            except Killed:
                self.count(f"{command.verb} killed")
            else:
                assert isinstance(expected, Model)
                self._become(expected)
                return
        if self.random.random() < 0.5:
            self.node.power_cut(self.random)
        if isinstance(expected, Model) and expected.same(self.node.member.look()):
            self._become(expected)

    def _become(self, model: Model) -> None:
        if model.past[len(self.model.past) :] and model.past[-1][2] == "keep":
            self.kept = model.past[-1][3]
        self.model = model

    def _held(self) -> None:
        """What is open or kept cannot be collected."""
        kept = {self.kept}
        if (now := self.model.open) is not None:
            assert self.node.held("deploy") == now.plan.head.target
            if now.plan.head.base is not None:
                assert self.node.held("deploy-base") == now.plan.head.base.path
            kept |= {now.plan.head.target} if now.decided == "keep" else set()
        assert self.node.held("kept") in kept


def test_as_the_model(tmp_path: Path) -> None:
    events: dict[str, int] = {}
    for seed in range(12):
        world = World(tmp_path, seed)
        for number in range(150):
            try:
                world.happen()
            except AssertionError:
                print(f"seed {seed}, event {number}")
                raise
        for event, times in world.events.items():
            events[event] = events.get(event, 0) + times
    # Everything has happened, often enough that something is tested.
    verbs = ("begin", "take", "note", "decide", "end")
    errors = ("DEPLOY.LEASE", "DEPLOY.FENCED", "DEPLOY.BASE", "DEPLOY.OPEN")
    for event in (*verbs, *(f"{verb} killed" for verb in verbs), *errors, "power cut"):
        assert events.get(event, 0) >= 10, (event, events)


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power is cut among real processes; waiting for the disk would take a minute."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Slow(Files):
    """A disk that gives another process time to come between."""

    def link(self, path: Path, target: str) -> None:
        time.sleep(0.002)
        super().link(path, target)

    def write(self, path: Path, at: int, data: bytes) -> None:
        time.sleep(0.002)
        super().write(path, at, data)


def race(node: DeployNode, runners: list[Callable[[Member], State]]) -> list[str]:
    """Run each in a process of its own, all at once; the ids of their errors, or nothing."""
    start, go = os.pipe()
    readers = []
    for run in runners:
        reader, writer = os.pipe()
        readers.append((reader, os.fork()))
        if readers[-1][1] == 0:
            os.close(go)
            said = "?"
            try:
                os.read(start, 1)  # until the other end is closed
                run(node.with_files(Slow()))
                said = ""
            except SparkserveError as error:
                said = error.id
            finally:
                os.write(writer, said.encode())
                os._exit(0)
        os.close(writer)
    os.close(go)
    os.close(start)
    found = []
    for reader, pid in readers:
        with os.fdopen(reader) as file:
            found.append(file.read())
        os.waitpid(pid, 0)
    return found


@pytest.mark.usefixtures("no_sync")
def test_racing(tmp_path: Path) -> None:
    """Of real processes that begin, or take, at once one does it; also with one plan; the others are told."""
    for number in range(10):
        node = DeployNode(tmp_path / f"{number}")
        node.closure("one")
        node.closure("two")
        base = node.switch("/nix/store/one")
        plans = [plan(base, f"/nix/store/{name}") for name in ("two", "two", "one")]
        begun = race(node, [lambda m, p=p, w=w: m.begin(p, w) for p, w in zip(plans, DEPLOYERS, strict=True)])  # type: ignore[misc]
        assert sorted(begun) == ["", "DEPLOY.LEASE", "DEPLOY.LEASE"]
        now = node.member.look().open
        assert now is not None and now.deployer == DEPLOYERS[begun.index("")]
        assert now.plan.head.target == node.held("deploy") == plans[begun.index("")].head.target
        taken = race(node, [lambda m, w=w, i=now.id, e=now.epoch: m.take(i, e, w) for w in DEPLOYERS])  # type: ignore[misc]
        assert sorted(taken) == ["", "DEPLOY.FENCED", "DEPLOY.FENCED"]
        after = node.member.look().open
        assert after is not None and after.deployer == DEPLOYERS[taken.index("")]
