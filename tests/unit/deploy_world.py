"""A fleet of three nodes in one process: each with the real member over a folder, and a model of the rest.

What is not real: the store (closures are two small files), systemd (a unit runs or not), the engine (a group
is up when it is wanted and all ranks run one closure), and time. Every call may meet a fault. What runs on
several nodes at once takes turns, in an order that can be repeated: at each command, and while one waits for
a lock or runs a program.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
from simulated_node import (
    FLEET,
    CutError,
    DefectError,
    GoneError,
    KilledError,
    Node,
    closure,
    unreachable,
    version_of,
)
from turns import Turns

from sparkserve.deploy import lease, planning, preflight, survey
from sparkserve.deploy.plan import Base, DeployPlan
from sparkserve.deploy.plan import Member as Planned
from sparkserve.group.protocol import PastStart, RankStatus, Status
from sparkserve.transport import deliver, rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.runner import Result, Runner

NODES = ("spark-0", "spark-1", "spark-2")


class World:
    """The nodes, and their group. `fault` is called for every command with its node and what would do it."""

    def __init__(self, root: Path, random_: random.Random) -> None:
        self.nodes = {name: Node(name, root / name, random_) for name in NODES}
        self.turns = Turns(random_)
        self.wanted = True
        self.broken = ""  # a version whose group does not come up
        self.lacks: set[str] = set()  # nodes to which the closure is still to be copied
        self.starts: tuple[PastStart, ...] = ()
        self.fault: Callable[[Node, Command, Callable[[], Result]], Result] = lambda node, command, do: do()

    @property
    def up(self) -> str | None:
        """The version that serves."""
        versions = {node.active if node.on else None for node in self.nodes.values()}
        version = versions.pop() if len(versions) == 1 else None
        return version if self.wanted and version != self.broken else None

    def status(self) -> Status:
        """What the controller says."""
        up = self.up
        trouble = "" if up else "another fleet id"
        return Status(
            fleet=FLEET,
            fleet_id=up or "",
            state="up" if up else "down",
            reason="",
            wanted=self.wanted,
            number=1,
            since=0.0,
            phase=None,
            phase_s=None,
            ranks=(RankStatus(rank=1, node="spark-1", connected=bool(up), trouble=trouble),),
            starts=self.starts,
        )

    @contextmanager
    def entered(self, node: Node) -> Iterator[None]:
        """A power cut in the middle of a command takes its answer with it."""
        try:
            yield
        except CutError:
            node.power_off()
            raise unreachable(node.name) from None
        except GoneError:
            raise unreachable(node.name) from None

    @contextmanager
    def played(self) -> Iterator[None]:
        """Time, and what happens at once, are of this world."""
        with pytest.MonkeyPatch.context() as patch:
            for module in (deliver, rollout, lease, planning, preflight, survey):
                patch.setattr(module, "parallel", self._parallel)
            patch.setattr(os, "fsync", lambda fd: None)  # what is not written is played, not waited for
            patch.setattr(rollout, "REBOOT_S", 0.0)
            patch.setattr(time, "sleep", lambda seconds: self.turns.give())
            yield

    def _parallel(self, runner: Runner, nodes: Mapping[str, object], work: Callable[[str], object]) -> None:
        """As `deliver.parallel`, in turns. Of a deployer that is killed only the commands go on."""
        errors = self.turns.all([partial(work, node) for node in nodes], until=KilledError)
        grave = (DefectError, KilledError, KeyboardInterrupt, Exception)
        if errors:
            raise min(errors, key=lambda error: [isinstance(error, kind) for kind in grave].index(True))


def running(root: Path, version: str) -> World:
    """A fleet whose nodes run `version`, as `up` has put it there."""
    made = World(root, random.Random(0))  # noqa: S311 - no secret
    for name, node in made.nodes.items():
        node.set_profile(closure(name, version))
        node.activate(closure(name, version))
        node.sync()
        node.start()
    return made


def plan_to(world: World, version: str) -> DeployPlan:
    """The plan that a deployer who looks now makes."""
    found = [
        Planned(
            name=name,
            base=Base(generation=node.current, path=node.path) if node.current and node.path else None,
            target=closure(name, version),
            bytes=1,
        )
        for name, node in world.nodes.items()
    ]
    base = version_of(world.nodes["spark-0"].path)
    return DeployPlan(
        fleet="desk", members=tuple(found), base_fleet_id=base, target_fleet_id=version, gates=("smoke",)
    )
