"""A fleet of three nodes in one process: each with the real member over a folder, and a model of the rest.

What is not real: the store (closures are two small files), systemd (a unit runs or not), the engine (a group
is up when it is wanted and all ranks run one closure), and time. Every call may meet a fault. What runs on
several nodes at once takes turns, in an order that can be repeated: at each command, and while one waits for
a lock or runs a program.
"""

from __future__ import annotations

import errno
import json
import os
import random
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import power_cuts
import pytest
from turns import Turns

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.deploy import lease, planning, preflight, survey
from sparkserve.deploy.member import Member
from sparkserve.deploy.plan import Base, DeployPlan
from sparkserve.deploy.plan import Member as Planned
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.group.protocol import PastStart, RankStatus, Status
from sparkserve.host.record import Record
from sparkserve.host.system import System
from sparkserve.runner import Result
from sparkserve.transport import deliver, rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.deploy.state import State
    from sparkserve.runner import Runner

NODES = ("spark-0", "spark-1", "spark-2")
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


class Deployer:
    """A runner by which `who` reaches the nodes of `world`."""

    def __init__(self, world: World, who: str) -> None:
        self.world, self.who = world, who
        self.ended: KilledError | SparkserveError | None = None

    def run(self, name: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`."""
        node = self.world.nodes[name]

        def do() -> Result:
            if not node.on:
                raise unreachable(name)
            with self.world.entered(node):
                return self._do(node, command)

        self.world.turns.give()
        if self.ended:
            raise self.ended
        if node.away:
            node.away -= 1
            raise unreachable(name)
        try:
            return self.world.fault(node, command, do)
        except KilledError as error:
            self.ended = error
            raise
        except KeyboardInterrupt:
            self.close()
            raise

    def send(self, name: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """See `Runner.send`: all closures are everywhere."""
        self.run(name, commands.reads("true"))

    def lines(self, name: str, command: Command) -> Generator[str, None, None]:
        """Nothing here reads lines."""
        raise NotImplementedError

    def close(self) -> None:
        """No command begins any more."""
        self.ended = self.ended or unreachable("here")

    def _do(self, node: Node, command: Command) -> Result:
        argv = command.argv
        if argv[1:3] == ("deploy", "member"):
            return self._effect(node, argv[4:], command) if argv[3] == "do" else _member(node, argv)
        if command.safety > Safety.READS_HOSTS:
            # Only what a copy needs may come without a lease while another one is open.
            is_copy = argv[0] in ("sh", "rm") and "incoming" in (*argv[-2:], argv[-1].rpartition("/")[2])
            if not is_copy and argv[:2] != ("sync", "-f"):
                raise DefectError(f"not fenced: {command.line()}")
            return Result(0)
        return self._reads(node, command)

    def _effect(self, node: Node, argv: Sequence[str], command: Command) -> Result:
        id, epoch, step, _, *inner = argv
        try:
            fd = node.member.effect(id, int(epoch), step)
        except SparkserveError as error:
            return Result(EXIT_CODES[error.id], json.dumps(error.as_dict()))
        try:
            node.acknowledge()
            boot = node.boots
            self.world.turns.give()
            if node.boots != boot:
                raise GoneError
            node.changed_by.append(f"{id} of {self.who}")  # a resume that goes on may meet two deployments
            return self._changes(node, tuple(inner))
        finally:
            os.close(fd)

    def _changes(self, node: Node, argv: tuple[str, ...]) -> Result:
        """What a command that changes a node does."""
        path = argv[0].rpartition("/bin/")[0]
        match argv:
            case (program,) if program.endswith(("/bin/activate", "/bin/deactivate")):
                wanted = path if program.endswith("/bin/activate") else None
                if node.activated == wanted:
                    return Result(0, "unchanged")
                if node.active is not None:
                    return Result(EXIT_CODES["NODE.ACTIVATE"], "", "an engine runs")
                if wanted and version_of(wanted) == node.refuses:
                    return Result(EXIT_CODES["NODE.ACTIVATE"], "", "a value differs from the plan")
                node.activate(wanted)
                if wanted and version_of(wanted) == node.reboot_for:
                    return Result(EXIT_CODES["NODE.REBOOT"], "", "a boot argument is missing")
            case ("nix-env", "--profile", _, "--set", closure):
                node.set_profile(closure)
            case ("sync", "-f", "/nix"):
                node.sync()
            case ("rm", "-f", commands.PROFILE):
                node.current = None
                node.link()
            case ("systemctl", "reboot"):
                node.reboot_for = ""
                node.reboot()
            case ("sh", "-c", _, "stop", *_):
                node.active = None
            case ("sh", "-c", _, "-", *units):
                node.active = version_of(node.activated)
                node.front = node.front or rollout.FRONT in units
            case (program, "rank", "ask", _, what) if program == f"{PROFILE}/bin/sparkserve":
                if node.path is None or node.active is None:
                    return Result(EXIT_CODES["GROUP.STATE"], "", "no controller")
                self.world.wanted = what == "start"
                return Result(0, self.world.status().model_dump_json())
            case ("rm", "-f", _):
                pass  # what a copy held
            case _:
                raise DefectError(argv)
        return Result(0)

    def _reads(self, node: Node, command: Command) -> Result:
        """What a command that only looks says."""
        match command.argv:
            case ("readlink", "-e", commands.PROFILE):
                return Result(0, f"{node.path}\n") if node.path else Result(1)
            case ("readlink", "-e", hold):
                link = node.member.system.at(hold)
                return Result(0, f"{link.readlink()}\n") if link.is_symlink() else Result(1)
            case ("sh", "-c", _, "generations", _):
                known = [f"{number} {path}" for number, path in node.generations.items()]
                return Result(0, "\n".join([f"current {node.current}"] * bool(node.current) + known))
            case ("nix-store", "--check-validity", *_, path):
                return Result(0, f"{path}\n" if node.name in self.world.lacks else "")
            case ("cat", _):
                return Result(0, str(node.boots))
            case ("sh", "-c", _, "read", *paths):
                return Result(0, "".join(map(node.described, paths)))
            case (_, "--dry-run", "--json"):
                return node.preview
            case ("systemctl", "show", _, *units):
                runs = {rollout.RANK: node.active is not None, rollout.FRONT: node.front}
                shown = [
                    f"Id={unit}\nActiveState={'active' if runs[unit] else 'inactive'}\n"
                    f"ExecStart={{ path={node.activated}/bin/sparkserve }}"
                    for unit in units
                ]
                return Result(0, "\n\n".join(shown))
            case (_, "rank", "ask" | "wait", *_):
                if node.path is None or node.active is None:
                    return Result(EXIT_CODES["GROUP.STATE"], "", "no controller")
                return Result(0, self.world.status().model_dump_json())
            case ("true",) | ("sh", "-c", _, "unverified", *_):
                return Result(0)
        raise DefectError(command.argv)


class Way:
    """How `who` reaches the world. `proves` is whether its gates pass."""

    def __init__(self, world: World, who: str, *, proves: bool = True) -> None:
        self.world, self.who, self.proves = world, who, proves

    def connect(self) -> Runner:
        """A runner of its own."""
        return Deployer(self.world, self.who)

    def healthy(self) -> None:
        """The group answers, or nobody does."""
        if self.world.up is None:
            raise SparkserveError("ENGINE.READY", expected="a token", found="none", where="here", do="Look.")

    def prove(self, plan: DeployPlan) -> None:
        """Gates, of what must be the target, unless others are at work whose target it may be."""
        if self.world.up not in (None, plan.target_fleet_id) and self.world.turns.alone:
            raise DefectError(f"{self.world.up} is proven for {plan.target_fleet_id}")
        if not self.proves or not self.world.up:
            raise SparkserveError("GATE.FAILED", expected="it good", found="it bad", where="here", do="Look.")


def plan_to(world: World, version: str) -> DeployPlan:
    """The plan that a deployer who looks now makes."""
    found = [
        Planned(
            name=name,
            base=Base(generation=node.current, path=node.path) if node.current and node.path else None,
            target=closure(name, version),
        )
        for name, node in world.nodes.items()
    ]
    base = version_of(world.nodes["spark-0"].path)
    return DeployPlan(
        fleet="desk", members=tuple(found), base_fleet_id=base, target_fleet_id=version, gates=("smoke",)
    )


def _member(node: Node, argv: Sequence[str]) -> Result:
    """What `sparkserve deploy member` prints."""
    verb, words = argv[3], argv[argv.index("--") + 1 :]
    member: Any = node.member
    try:
        match verb:
            case "begin":
                state = member.begin(DeployPlan.model_validate_json(words[0]), words[1])
            case "look":
                state = member.look()
            case _:
                state = getattr(member, verb)(words[0], int(words[1]), *words[2:])
    except SparkserveError as error:
        return Result(EXIT_CODES[error.id], json.dumps(error.as_dict()))
    node.acknowledge()
    return Result(0, state.model_dump_json(by_alias=True))


def unreachable(node: str) -> SparkserveError:
    """The error for a node that does not answer."""
    return SparkserveError("NODE.UNREACHABLE", expected="a login", found="no answer", where=node, do="Look.")
