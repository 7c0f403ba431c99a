"""A real group for tests: the closures of this checkout on nodes of their own, with real SGLang."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import endpoint
import pytest
from nodes import attempt, ssh, until

from sparkserve import commands, nix
from sparkserve.commands import Safety
from sparkserve.fleet import plans
from sparkserve.group.protocol import PastStart, Status
from sparkserve.local import triangle
from sparkserve.pins import fetch
from sparkserve.runner import SSH, check
from sparkserve.transport import deliver, rollout
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from engine_copy import Copy

    from sparkserve.local.record import Fleet

FLEET = "local-triangle"
HEAD = "spark-0"
NODES = (HEAD, "spark-1", "spark-2")
UP_S = 300.0  # 25 s on two idle cores; with other work beside it, 110 s were seen


class Real(NamedTuple):
    """Nodes, a runner that may do anything on them, and what they run."""

    fleet: Fleet
    runner: SSH
    closures: dict[str, Path]
    port: int

    def status(self) -> Status:
        return Status.model_validate_json(check(self.runner, HEAD, commands.ask_group("status")))

    def sh(self, node: str, command: str) -> str:
        return ssh(self.fleet, node, command)

    def attempt(self, node: str, command: str) -> subprocess.CompletedProcess[str]:
        return attempt(self.fleet, node, command)

    def health(self) -> int:
        return endpoint.health(self.port)

    def ask(self, question: str) -> str:
        return endpoint.ask(self.port, question)

    def bring_up(self) -> None:
        """What `up` does on nodes that are on, which mends what a test broke."""
        for node in NODES:
            until(f"{node} to answer", lambda: self.attempt(node, "true").returncode == 0, 30)  # noqa: B023
        rollout.put_into_effect(self.runner, self.closures)
        rollout.start_group(self.runner, HEAD)
        until("healthy", lambda: self.health() == 200, 30)

    def end_of(self, number: int, seconds: float = 20) -> PastStart:
        """Wait until boot `number` has ended; how."""
        found: list[PastStart] = []

        def ended() -> bool:
            found[:] = [each for each in self.status().starts if each.number == number and each.ended_at]
            return bool(found)

        took = until(f"end of boot {number}", ended, seconds)
        sys.stderr.write(f"boot {number} ended after {took:.1f} s: {found[0].reason}\n")
        return found[0]


@contextmanager
def inside(copy: Copy) -> Iterator[None]:
    """In this process too, the checkout is `copy`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(copy.path))
        yield


@contextmanager
def real(copy: Copy) -> Iterator[Real]:
    """A served group on three nodes; afterwards nothing of it is left but the disks."""
    with inside(copy):
        found = plans.load(FLEET)
        engine = found[0].engine
        builder = ["stage0", "base", "tools", "harness", "node", "cc"]
        fetch.fetch([*builder, engine.package, engine.model], [], None)
        names = [plan.node.name for plan in found]
        built = addressed(nix.build([plans.host(plan) for plan in found]))
        try:
            fleet = triangle.power_on(found)
            with SSH(fleet.ssh_config, Safety.STOPS_SERVING, fleet.environment) as runner:
                made = Real(fleet, runner, dict(zip(names, built, strict=True)), found[0].serving.port)
                deliver.deliver(runner, made.closures)
                made.bring_up()
                yield made
        finally:
            triangle.down(FLEET)
