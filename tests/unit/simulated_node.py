"""One node in a folder: the real member over a model of the store, systemd, the engine and power cuts."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING

import power_cuts

from sparkserve import commands
from sparkserve.deploy.member import Member
from sparkserve.errors import SparkserveError
from sparkserve.host.record import Record
from sparkserve.host.system import System
from sparkserve.runner import Result

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from sparkserve.deploy.state import State

FLEET = "desk"
PROFILE = commands.PROFILE


class DefectError(BaseException):
    """What no deployer may do; it does not count as a failure that he undoes."""


class KilledError(BaseException):
    """The deployer's process is gone: nothing of it runs any more."""


class CutError(Exception):
    """The node loses its power at this moment."""


class GoneError(Exception):
    """The node has lost its power, or has been rebooted, since the command began."""


def closure(node: str, version: str) -> str:
    """The store path of a node's host closure; `version` is its fleet id too."""
    return f"/nix/store/{version * 32}-host-{node}"


def version_of(path: str | None) -> str | None:
    """The inverse."""
    return path and path.rpartition("/")[2][0]


class Node:
    """One node. What begins with `disk_` is what a power cut leaves."""

    def __init__(self, name: str, root: Path, random_: random.Random) -> None:
        self.name, self.root, self.random = name, root, random_
        self.cut_at: int | None = None  # the next so many calls of files
        self.boots = 0
        self._boot()
        self.full = 0  # calls of files that find no space
        self.on, self.away = True, 0  # away: does not answer to so many commands
        self.active: str | None = None  # the version that the rank unit runs
        self.front = False
        self.generations: dict[int, str] = {}
        self.current: int | None = None
        self.disk_profile: tuple[dict[int, str], int | None] = ({}, None)
        self.tree: power_cuts.Tree = {}
        self.acknowledged: dict[Path, bytes] = {}
        self.changed_by: list[str] = []
        self.reboot_for = ""  # a version that needs one
        self.refuses = ""  # a version that does not activate
        self.preview = Result(0, '{"foreign": []}')  # what a dry run of an activation says
        for version in "abc":
            folder = root / closure(name, version).lstrip("/")
            folder.mkdir(parents=True)
            plan = {"fleet": {"name": FLEET}, "node": {"name": name}}
            (folder / "plan.json").write_text(json.dumps(plan))
            (folder / "closure.json").write_text(json.dumps({"fleet_id": version}))

    @property
    def path(self) -> str | None:
        """The current closure."""
        return self.generations.get(self.current or 0)

    @property
    def activated(self) -> str | None:
        """What is in effect: it is on the disk at once."""
        try:
            return Record.model_validate_json(self._record.read_bytes()).closure
        except FileNotFoundError:
            return None

    def activate(self, path: str | None) -> None:
        """Put a closure into effect; None takes all away."""
        self._record.parent.mkdir(parents=True, exist_ok=True)
        if path is None:
            self._record.unlink(missing_ok=True)
        else:
            self._record.write_text(Record(node=self.name, closure=path).model_dump_json())

    def set_profile(self, path: str) -> None:
        """What nix-env --set does."""
        newest = max(self.generations, default=0)
        if self.generations.get(newest) != path:
            newest += 1
            self.generations[newest] = path
        self.current = newest
        self.link()

    def link(self) -> None:
        """Make the profile's links what we know of them."""
        profile = self.root / PROFILE.lstrip("/")
        profile.parent.mkdir(parents=True, exist_ok=True)
        for old in profile.parent.iterdir():
            old.unlink()
        for number, path in self.generations.items():
            (profile.parent / f"{profile.name}-{number}-link").symlink_to(path)
        if self.current:
            profile.symlink_to(f"{profile.name}-{self.current}-link")

    def step(self) -> None:
        """A moment in the middle of a command, at which a power cut may come."""
        self._before(self.boots)

    def sync(self) -> None:
        """Bring the profile onto the disk."""
        self.disk_profile = (dict(self.generations), self.current)

    def power_off(self) -> None:
        """A power cut. What was acknowledged of the journal must be there afterwards."""
        self.on, self.active, self.front, self.cut_at = False, None, False, None
        self.generations, self.current = dict(self.disk_profile[0]), self.disk_profile[1]
        self.link()
        self.tree = power_cuts.outcome(self.random, self.files.trace, self.tree)
        for folder in self._kept:
            below = {path: value for path, value in self.tree.items() if folder in path.parents}
            power_cuts.write(folder, below)
        self._boot()
        for journal, text in self.acknowledged.items():
            there = journal.read_bytes() if journal.exists() else b""
            if not there.startswith(text):
                raise DefectError(f"{self.name} forgot what is in {journal.name}")

    def power_on(self) -> None:
        """It starts, and with it the units of what is in effect."""
        if not self.on:
            self.on = True
            self.start()

    def reboot(self) -> None:
        """It goes down in order: everything is written."""
        self.sync()
        self.tree = {path: value for folder in self._kept for path, value in power_cuts.read(folder).items()}
        self._boot()
        self.start()

    def described(self, path: str) -> str:
        """What `commands.read_closures` says of one."""
        at = self.path if path == PROFILE else path
        folder = self.member.system.at(at or "/none")
        files = [folder / name for name in ("plan.json", "closure.json")]
        return "".join(f"{file.read_text() if file.exists() else ''}\0" for file in files) + "\0"

    def start(self) -> None:
        """Start the units that the closure in effect has."""
        self.active = version_of(self.activated)
        self.front = self.active is not None

    def acknowledge(self) -> None:
        """What the journal has now was reported as written."""
        for path in self.member.folder.glob("*"):
            whole = path.read_bytes().partition(b"\0")[0].rpartition(b"\n")[0]
            self.acknowledged[path] = whole  # what is torn was not

    @property
    def _record(self) -> Path:
        return self.member.system.state() / "record.json"

    def seen(self) -> State:
        """What `look` would say on a node with nothing wrong. Takes no part in what happens."""
        wrong = self.cut_at, self.full
        self.cut_at, self.full = None, 0
        try:
            return self.member.look()
        finally:
            self.cut_at, self.full = wrong

    @property
    def _kept(self) -> tuple[Path, Path]:
        return self.member.folder, self.member.system.at(commands.HOLDS)

    def _boot(self) -> None:
        """What runs from now on is of another boot than what ran before, which can do nothing more."""
        self.boots += 1
        boot = self.boots
        self.files = power_cuts.Recording(lambda number: self._before(boot))
        self.member = Member(System(self.root, name=self.name), self.files, lambda: "2026-01-01T00:00:00Z")

    def _before(self, boot: int) -> None:
        if boot != self.boots:
            raise GoneError
        if self.full:
            self.full -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.cut_at is not None:
            self.cut_at -= 1
            if self.cut_at < 0:
                raise CutError


def unreachable(node: str) -> SparkserveError:
    """The error for a node that does not answer."""
    return SparkserveError("NODE.UNREACHABLE", expected="a login", found="no answer", where=node, do="Look.")
