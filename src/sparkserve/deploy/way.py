"""How a deployer reaches the nodes and the endpoint of a fleet: of nodes on this machine, or of Sparks."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import plan
from sparkserve.commands import HOLDS, PROFILE, Safety
from sparkserve.deploy import history, survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, plans
from sparkserve.local import health, several, triangle
from sparkserve.output import write_file
from sparkserve.runner import SSH, Local

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from sparkserve.commands import Command
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan
    from sparkserve.runner import Result, Runner


@dataclass(frozen=True)
class Way:
    """To a fleet: `head` is the plan of its head, `here` its nodes when they are on this machine.

    `key_file` has a key of the endpoint, for its gates. `own` is the node that this is, if it is one.
    """

    head: Plan
    here: Fleet | None
    key_file: Path | None = None
    own: str | None = None

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return [node.name for node in self.head.fleet.nodes]

    def connect(self, allow: Safety = Safety.STOPS_SERVING) -> Runner:
        """A new runner, which the caller closes."""
        if self.here:
            return several.connect(self.here, allow)
        ssh = SSH(self._config(), allow)
        return Among(self.own, Local(allow), ssh) if self.own else ssh

    def healthy(self) -> None:
        """Wait until the endpoint answers with a token. Raises `ENGINE.READY`."""
        with self._endpoint(self.head if self.here else self._current()) as endpoint:
            health.wait(endpoint, several.HEALTHY_S)

    def prove(self, plan: DeployPlan) -> None:
        """Run the plan's gates, quick. Raises `GATE.FAILED`."""
        from sparkserve.gates import files, runner, subject
        from sparkserve.gates.evidence import Subject

        with self._endpoint(self.head) as endpoint:
            about = Subject(
                endpoint=endpoint,
                model=self.head.serving.model,
                fleet=plan.fleet,
                fleet_id=plan.target_fleet_id,
                plan_sha256=subject.digest(self.head),
            )
            seed = secrets.randbelow(2**31)
            order = runner.Order(about, quick=True, seed=seed, plan=self.head, key_file=self.key_file)
            found = asyncio.run(runner.run(plan.gates, order, files.folder()))
        if failed := [evidence for evidence, _ in found if not evidence.passed]:
            raise SparkserveError(
                "GATE.FAILED",
                expected=f"the gates {', '.join(plan.gates)} to pass",
                found="; ".join(f"{evidence.gate}: {evidence.summary}" for evidence in failed),
                where=plan.fleet,
                do=f"The evidence is in {files.folder()}.",
            )

    @contextmanager
    def _endpoint(self, head: Plan) -> Iterator[str]:
        """Where the front of the head, which runs the plan `head`, answers from here."""
        if self.here or self.own == self.nodes[0]:
            yield head.serving.endpoint
            return
        # Most listen on the head's loopback. Until ssh forwards, nobody answers, and we ask again.
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            ours = free.getsockname()[1]
        options = ["-N", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ControlPath=none"]
        through = ["-L", f"127.0.0.1:{ours}:{head.serving.host}:{head.serving.port}", self.nodes[0]]
        argv = ["ssh", "-F", str(self._config()), *options, *through]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{ours}"
        finally:
            process.terminate()
            process.wait()

    def _current(self) -> Plan:
        """The plan of what is current on the head: after an undo it is not the one that was to be."""
        with closing(self.connect(Safety.READS_HOSTS)) as runner:
            there = survey.descriptions(runner, self.nodes[0], [PROFILE])[PROFILE]
        return plan.parse(json.loads(there.plan)) if there else self.head

    def _config(self) -> Path:
        path = history.of(self.head.fleet.name) / "ssh_config"
        # In one step: the ssh of another command may be reading it.
        write_file(path, config(self.head))
        return path


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


def from_node(closures: Sequence[Path] = (Path(f"{HOLDS}/deploy"), Path(PROFILE))) -> Way:
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
            return Way(found, None, own=found.node.name)
    raise unread or SparkserveError(
        "HOST.SYSTEM",
        expected="a sparkserve checkout, or a node of a fleet",
        found="no flake.nix with hosts/ here or above, and no closure",
        where=str(Path.cwd()),
        do="Change into the checkout, or run it on a node.",
    )


def to(fleet: str, head: Plan | None = None, key_file: Path | None = None) -> Way:
    """The way to a fleet, for a deployment of the plan `head` of its head.

    Raises `ENGINE.STATE` for nodes of this machine that are off, and `FLEET.OPTION` for a fleet without any.
    """
    here = triangle.load(fleet) if triangle.names(fleet).folder.exists() else None
    found = head or (here.plans[0] if here else plans.load(fleet)[0])
    if found.fleet.topology == "single":
        raise SparkserveError(
            "FLEET.OPTION",
            expected="a fleet of several nodes",
            found="fleet.topology single, which has no nodes to deploy to",
            where=f"hosts/{fleet}/fleet.nix",
            do=f"{command('up', fleet)} runs what its files say.",
        )
    return Way(found, here, key_file or found.serving.key_file)
