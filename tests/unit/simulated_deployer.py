"""A deployer of a fleet in one process: what each command that it sends says and does on a node."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from simulated_node import PROFILE, DefectError, GoneError, KilledError, unreachable, version_of

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.deploy.plan import DeployPlan
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.runner import Result
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from deploy_world import World
    from simulated_node import Node

    from sparkserve.commands import Command
    from sparkserve.runner import Runner


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
            case ("sh", "-c", _, "current", _, closure, _, _):
                node.set_profile(closure)
                node.step()
                node.sync()
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
