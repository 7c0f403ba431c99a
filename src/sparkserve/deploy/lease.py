"""What a deployer holds of the nodes of one deployment, and the only way in which it changes them.

Every command that changes a node goes there together with the node's epoch. So a deployer that was taken for
dead and wakes up, or a command that was on its way for long, changes nothing any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.deploy import members
from sparkserve.deploy.state import State
from sparkserve.errors import SparkserveError
from sparkserve.runner import failed, garbled
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.state import Deployment, Outcome
    from sparkserve.runner import Result, Runner

# Steps that the head notes, for whoever ends the deployment. From "change" on a node may differ from before;
# "served": the group was wanted up before that; "settled": after an undo all are as before, and only end.
CHANGE, SERVED, SETTLED = "change", "served", "settled"
_PATH = re.compile(r"/nix/store/[^\s\0/]+")


class Lease:
    """Of the deployment `plan`, by `deployer`. `held` has what each node said last of those we hold."""

    def __init__(self, runner: Runner, plan: DeployPlan, deployer: str) -> None:
        self.runner = runner
        self.plan = plan
        self.deployer = deployer
        self.held: dict[str, Deployment] = {}

    def begin(self) -> None:
        """Lease all members. The head comes first: there, one of two deployers loses with nothing changed.

        Raises `DEPLOY.LEASE`, `DEPLOY.BASE`, `NODE.CLOSURE`, and as `run` of the runner.
        """
        head, *workers = [member.name for member in self.plan.members]
        for nodes in ([head], workers):
            self._each(
                nodes,
                lambda node: members.begin(
                    self.runner, node, self.program(node), self.plan, self.deployer
                ),
            )  # fmt: skip

    def take(self, node: str, opened: Deployment) -> None:
        """Go on with the deployment on a node that has it `opened`, in place of whoever had it."""
        self._each(
            [node],
            lambda node: members.take(
                self.runner, node, self.program(node), opened, self.deployer
            ),
        )  # fmt: skip

    def note(self, node: str, *steps: str) -> None:
        """Write down on the node that these are done, or about to be."""
        self._each([node], lambda node: members.note(*self._of(node), *steps))

    def decide(self, node: str, outcome: Outcome) -> None:
        """Write down on the node how the deployment ends."""
        self._each([node], lambda node: members.decide(*self._of(node), outcome))

    def end(self, node: str) -> None:
        """Give the node's lease back."""
        members.end(*self._of(node))
        del self.held[node]

    def doing(self, step: str) -> Runner:
        """A runner that changes nodes only while we hold them; `step` is written down on each first."""
        return Fenced(self, step)

    def program(self, node: str) -> str:
        """The node's side: of the target, which the node holds while the deployment is open."""
        member = self.plan.member(node)
        if member is None:
            raise ValueError(node)
        return f"{member.target}/bin/sparkserve"

    def _of(self, node: str) -> tuple[Runner, str, str, Deployment]:
        return self.runner, node, self.program(node), self.held[node]

    def _each(self, nodes: Iterable[str], call: Callable[[str], State]) -> None:
        def work(node: str) -> None:
            state = call(node)
            if state.open is not None:
                self.held[node] = state.open

        parallel(self.runner, dict.fromkeys(nodes), work)


@dataclass(frozen=True)
class Fenced:
    """The runner of `lease`, for one step of it."""

    lease: Lease
    step: str

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`. Raises `DEPLOY.FENCED` when the node is no longer ours."""
        if command.safety <= Safety.READS_HOSTS:
            return self.lease.runner.run(node, command, feed=feed)
        now = self.lease.held[node]
        program = self.lease.program(node)
        fenced = commands.deploy_effect(program, now.id, now.epoch, self.step, command)
        result = self.lease.runner.run(node, fenced, feed=feed)
        if (error := members.told(result)) is not None:
            raise error  # of ours: the command itself speaks no JSON
        return result

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """See `Runner.send`."""
        self.lease.runner.send(node, path, on_line)

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """See `Runner.lines`."""
        return self.lease.runner.lines(node, command)

    def close(self) -> None:
        """See `Runner.close`."""
        self.lease.runner.close()


def looks(runner: Runner, nodes: Iterable[str]) -> dict[str, State | SparkserveError]:
    """What each of `nodes` knows of deployments, all asked at once; the error of one that does not say.

    A node that has never been part of one may have no program that could say so.
    """
    found: dict[str, State | SparkserveError] = {}

    def look(node: str) -> None:
        try:
            found[node] = look_at(runner, node)
        except SparkserveError as error:
            found[node] = error

    parallel(runner, dict.fromkeys(nodes), look)
    return found


def look_at(runner: Runner, node: str) -> State:
    """What the node knows, by the program of an open deployment's target, of the one kept, or current."""
    for where in (commands.held("deploy"), commands.held("kept"), commands.current()):
        result = runner.run(node, where)
        if result.code not in (0, 1):  # 1: there is none
            raise failed(node, where, f"exit code {result.code}: {result.err.strip()[-300:]}")
        if path := result.out.strip():
            if result.code == 1 or not _PATH.fullmatch(path):
                raise garbled(node, where, path)
            try:
                return members.look(runner, node, f"{path}/bin/sparkserve")
            except SparkserveError as error:
                # A closure of before there were deployments, or none of ours.
                if error.id not in ("NODE.COMMAND", "CLI.USAGE") or where != commands.current():
                    raise
    return State()
