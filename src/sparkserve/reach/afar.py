"""The way to Sparks: over ssh to the addresses in the plan, and to the endpoint through a forwarded port."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import commands, plan
from sparkserve.commands import HOLDS, PROFILE, Safety
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.runner import SSH, Local, check

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from sparkserve.commands import Command
    from sparkserve.plan import Plan, Serving
    from sparkserve.runner import Result, Runner

LOOK_S = 10.0  # people wait for it


def needed(head: Plan) -> bool:
    """Whether the nodes of this plan's fleet are Sparks: its engine needs devices, which no node of this
    machine has."""
    return head.fleet.topology != "single" and bool(head.engine.devices)


@dataclass(frozen=True)
class Afar:
    """To the Sparks of the fleet that `head` is the plan of. `own` is the node that this is, if it is one."""

    head: Plan
    own: str | None = None

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return [node.name for node in self.head.fleet.nodes]

    @property
    def on(self) -> list[str]:
        """See `Way.on`: all, as only an answer tells."""
        return self.nodes

    def connect(self, allow: Safety = Safety.READS_HOSTS) -> Runner:
        """See `Way.connect`."""
        ssh = SSH(config(self.head), allow)
        return Among(self.own, Local(allow), ssh) if self.own else ssh

    def current(self, runner: Runner) -> Plan:
        """See `Way.current`. Raises `PLAN.SCHEMA` for a plan of another version."""
        node = self.nodes[0]
        value = self.claimed(runner, node)
        if value is None:
            raise SparkserveError(
                "ENGINE.STATE",
                expected=f"a host closure as the current generation of {node}",
                found="none",
                where=f"{node}, {PROFILE}",
                do=f"Bring one: {command('deploy --apply', self.head.fleet.name)}.",
            )
        try:
            return plan.parse(value)
        except SparkserveError as error:
            raise SparkserveError(
                "PLAN.SCHEMA",
                expected="a plan that this version of sparkserve reads",
                found=f"one of another version: expected {error.expected}, found {error.found}",
                where=f"{node}, {PROFILE}",
                do="Check out the commit that it was made of, or deploy with this version: "
                f"{command('deploy --apply', self.head.fleet.name)}.",
            ) from None

    def claimed(self, runner: Runner, node: str) -> object:
        """The plan of what is current on a node, as JSON; None without one.

        Raises `ENGINE.STATE` for one of another fleet: addresses may be those of several.
        """
        read = replace(commands.read_closures(PROFILE), timeout_s=LOOK_S)
        text = check(runner, node, read).partition("\0")[0]
        if not text:
            return None
        try:
            value = json.loads(text)
            fleet = value["fleet"]["name"]
        except (ValueError, KeyError, TypeError):
            return {}
        if fleet != self.head.fleet.name:
            raise SparkserveError(
                "ENGINE.STATE",
                expected=f"a node of the fleet {self.head.fleet.name}",
                found=f"one of the fleet {fleet}",
                where=f"{node}, {PROFILE}",
                do=f"To see that one: {command('status', fleet)}. "
                f"{command('deploy', self.head.fleet.name)} says what it takes to change it.",
            )
        return value

    @contextmanager
    def endpoint(self, serving: Serving) -> Iterator[str]:
        """See `Way.endpoint`. Most fronts listen on the head's loopback."""
        if self.own == self.nodes[0]:
            yield serving.endpoint
            return
        with SSH(config(self.head)) as ssh, ssh.forward(self.nodes[0], serving.host, serving.port) as port:
            yield f"http://127.0.0.1:{port}"


@dataclass(frozen=True)
class Among:
    """The runner on a node: what is for itself runs here."""

    own: str
    local: Local
    others: SSH

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`."""
        return self._to(node).run(node, command, feed=feed)

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """See `Runner.send`."""
        self._to(node).send(node, path, on_line)

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """See `Runner.lines`."""
        return self._to(node).lines(node, command)

    def close(self) -> None:
        """See `Runner.close`."""
        self.others.close()

    def _to(self, node: str) -> Local | SSH:
        return self.local if node == self.own else self.others


def config(plan: Plan) -> str:
    """The text of an ssh_config that knows the nodes of a fleet, and all else from the owner's own. Pure."""
    nodes = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in plan.fleet.nodes)
    # The first value counts. With -F, ssh reads neither of these by itself.
    return f"{nodes}Host *\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n  User root\n"


def from_node(closures: Sequence[Path] = (Path(f"{HOLDS}/deploy"), Path(PROFILE))) -> Afar:
    """The way from this node to the others of its fleet, whatever fleet that is.

    Of an open deployment one of target and base may be of another version than this program. Raises
    `HOST.SYSTEM`, and `PLAN.SCHEMA` when all are.
    """
    unread: SparkserveError | None = None
    for closure in closures:
        if not (closure / "plan.json").exists():
            continue
        try:
            found = plan.load(closure / "plan.json")
        except SparkserveError as error:
            unread = error
        else:
            return Afar(found, own=found.node.name)
    raise unread or SparkserveError(
        "HOST.SYSTEM",
        expected="a sparkserve checkout, or a node of a fleet",
        found="no flake.nix with hosts/ here or above, and no closure",
        where=str(Path.cwd()),
        do="Change into the checkout, or run it on a node.",
    )
