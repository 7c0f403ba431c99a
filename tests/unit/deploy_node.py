"""A node with a store, a profile and a journal, all in a folder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import power_cuts
from host_node import Node, closure

from sparkserve import commands
from sparkserve.deploy.member import Member
from sparkserve.deploy.plan import Base, DeployPlan
from sparkserve.deploy.plan import Member as Planned

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.deploy.files import Files

NODE = "spark-0"


class DeployNode:
    """The node; `files` keep the trace of what its member does since the last power cut."""

    def __init__(self, folder: Path) -> None:
        self.node = Node(folder)
        self.files = power_cuts.Recording(self._step)
        self.member = self.with_files(self.files)
        self.profile = self.node.system.at(commands.PROFILE)
        self.profile.parent.mkdir(parents=True)
        self._before: power_cuts.Tree = {}
        self._steps_left, self._end = -1, BaseException

    def with_files(self, files: Files) -> Member:
        """The member, by other files."""
        return Member(self.node.system, files, now=lambda: "2026-01-01T00:00:00Z")

    def closure(self, name: str, node: str = NODE) -> str:
        """A host closure in the store."""
        path = f"/nix/store/{name}"
        self.node.system.at(path).parent.mkdir(parents=True, exist_ok=True)
        closure(self.node.system.at(path), node=node)
        return path

    def switch(self, path: str) -> Base:
        """Make `path` the current generation, as nix-env --set does."""
        taken = [int(link.name.split("-")[1]) for link in self.profile.parent.glob("*-link")]
        number = max(taken, default=0) + 1
        link = self.profile.with_name(f"{self.profile.name}-{number}-link")
        link.symlink_to(path)
        self.profile.unlink(missing_ok=True)
        self.profile.symlink_to(link.name)
        return Base(generation=number, path=path)

    def forget(self) -> None:
        """Remove the profile with all its generations."""
        for link in self.profile.parent.glob(f"{self.profile.name}*"):
            link.unlink()

    def held(self, name: str) -> str | None:
        """What a GC root points to."""
        link = self.node.system.at(f"{commands.HOLDS}/{name}")
        return str(link.readlink()) if link.is_symlink() else None

    @contextmanager
    def ending_at(self, number: int, end: type[BaseException]) -> Iterator[None]:
        """While the body runs, raise `end` before its call `number` of the files."""
        self._steps_left, self._end = number, end
        try:
            yield
        finally:
            self._steps_left = -1

    def _step(self, _number: int) -> None:
        self._steps_left -= 1
        if self._steps_left == -1:
            raise self._end

    def lasting(self) -> power_cuts.Tree:
        """What the member has written."""
        found: power_cuts.Tree = {}
        for folder in self._folders():
            found |= power_cuts.read(folder)
        return found

    def power_cut(self, random_: random.Random) -> None:
        """Lose some of what was not synced."""
        tree = power_cuts.outcome(random_, self.files.trace, self._before)
        for folder in self._folders():
            power_cuts.write(folder, {path: tree[path] for path in tree if folder in path.parents})
        self.files.trace.clear()
        self._before = tree

    def _folders(self) -> list[Path]:
        return [self.member.folder, self.node.system.at(commands.HOLDS)]


def plan(base: Base | None, target: str, **more: Any) -> DeployPlan:
    """The plan of a fleet with this node as its head."""
    return DeployPlan(
        schema="sparkserve.deploy/1",
        fleet="local-triangle",
        members=(
            Planned(name=NODE, base=base, target=target, bytes=1),
            Planned(name="spark-1", base=None, target="/nix/store/other", bytes=1),
        ),
        base_fleet_id=None,
        target_fleet_id="f" * 12,
        **more,
    )
