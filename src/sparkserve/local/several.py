"""A fleet of several nodes on this machine: nodes, copies, one group, one endpoint."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve import checkout, disk, nix
from sparkserve.commands import Safety
from sparkserve.deploy import survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import plans
from sparkserve.interrupts import uninterrupted
from sparkserve.local import lock, namespaces, power, triangle
from sparkserve.local.fleets import Up, advice
from sparkserve.reach import health, logs, nodes
from sparkserve.runner import SSH
from sparkserve.terminal import console, phase
from sparkserve.transport import deliver, rollout
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sparkserve.group.protocol import Status
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan, Serving
    from sparkserve.runner import Runner


def bring_up(found: Sequence[Plan]) -> Up:
    """Make the fleet of these plans (in rank order) serve. Raises any error of the phases.

    Nodes that were down before are down again after an error or Ctrl-C, but for `DEPLOY.LEASE`.
    """
    name, head = found[0].fleet.name, found[0]
    seconds: dict[str, float] = {}
    with disk.guarded(checkout.state()), lock.held(checkout.state(), name):
        namespaces.check()
        triangle.check(found)
        disk.check(checkout.state())
        closures = build(found, seconds)
        were_on = exists(name)
        try:
            begin = time.monotonic()
            with phase("Power the nodes on"):
                fleet = triangle.power_on(found)
            seconds["nodes"] = time.monotonic() - begin
            begin = time.monotonic()
            with closing(connect(fleet, Safety.STOPS_SERVING)) as runner:
                survey.refuse_open(runner, closures)
                deliver.deliver(runner, closures)
                seconds["copy"] = time.monotonic() - begin
                begin = time.monotonic()
                try:
                    already = not rollout.put_into_effect(runner, closures) and _state(runner, head) == "up"
                    status = rollout.start_group(runner, head.node.name)
                    health.wait(head.serving.endpoint, name)
                except SparkserveError:
                    if not were_on:
                        logs.keep(runner, name, fleet.nodes, checkout.state())
                    raise
            seconds["ready"] = time.monotonic() - begin
        except BaseException as error:
            # What is open can only be ended on nodes that are on.
            is_open = isinstance(error, SparkserveError) and error.id == "DEPLOY.LEASE"
            if not were_on and not is_open:
                with uninterrupted():
                    triangle.down(name)
            raise
    serving, keyed = head.serving, head.serving.key_file is not None
    return Up(serving.model, serving.endpoint, status.fleet_id, already, None, seconds, keyed)


def exists(fleet: str) -> bool:
    """Whether nodes of this fleet are there, or something that is left of them."""
    return triangle.exists(fleet)


@dataclass(frozen=True)
class Here:
    """The way to nodes on this machine. See `reach.way.Way`."""

    fleet: Fleet

    @property
    def head(self) -> Plan:
        """The plan that the head was powered on for, or was deployed by from here."""
        return self.fleet.plans[0]

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return self.fleet.nodes

    @property
    def on(self) -> list[str]:
        """Those that are powered on."""
        return [node for node in self.nodes if power.init(self.fleet, node) is not None]

    def connect(self, allow: Safety = Safety.READS_HOSTS) -> Runner:
        """See `Way.connect`."""
        return connect(self.fleet, allow)

    def current(self, runner: Runner) -> Plan:
        """See `Way.current`: nobody needs to be asked."""
        return self.head

    @contextmanager
    def endpoint(self, serving: Serving) -> Iterator[str]:
        """See `Way.endpoint`: the keeper passes the port on."""
        yield serving.endpoint


class Nodes(nodes.Nodes):
    """A fleet whose nodes are on this machine, or something that is left of them."""

    def way(self) -> Here:
        """See `nodes.Nodes.way`."""
        return Here(triangle.load(self.name))

    def advice(self, state: str) -> str:
        """See `There.advice`."""
        return advice(state, self.name)

    def take_down(self) -> bool:
        """Drain the group and end the nodes. Their disks stay, and the ends of their logs here."""
        try:
            there = triangle.load(self.name)
        except SparkserveError as error:
            console.print(f"Not drained: {error}", markup=False)
        else:
            self._drain(there)
        with phase(f"Power off the nodes of {self.name}"):
            return triangle.down(self.name)

    def _drain(self, there: Fleet) -> None:
        with closing(connect(there, Safety.STOPS_SERVING)) as runner:
            try:
                with phase(f"Drain {self.name}"):
                    rollout.stop(runner, dict.fromkeys(there.nodes))
            except SparkserveError as error:
                console.print(f"Not drained: {error}", markup=False)
            logs.keep(runner, self.name, there.nodes, checkout.state())


def connect(fleet: Fleet, allow: Safety = Safety.READS_HOSTS) -> Runner:
    """The way to the nodes."""
    return SSH(fleet.ssh_config, allow, fleet.environment, fleet.names.connections)


def build(found: Sequence[Plan], seconds: dict[str, float]) -> dict[str, Path]:
    """The closures of these plans by node, in rank order; `seconds` gets each phase's. Raises `NIX.BUILD`."""
    from sparkserve.pins import BUILDER, fetch

    begin = time.monotonic()
    engine = found[0].engine
    guard = ["cc"] if found[0].guard else []  # it is compiled here
    fetch.fetch([*BUILDER, "node", *guard, engine.package, engine.model], [], None)
    seconds["pins"] = time.monotonic() - begin
    begin = time.monotonic()
    names = [plan.node.name for plan in found]
    with phase(f"Build the closures of {', '.join(names)}") as detail:
        built = nix.build(list(map(plans.host, found)), on_line=lambda line: detail(line[:100]))
    closures = dict(zip(names, addressed(built), strict=True))
    seconds["build"] = time.monotonic() - begin
    return closures


def _state(runner: Runner, head: Plan) -> str:
    status: Status | None = rollout.status(runner, head.node.name)
    return status.state if status else "down"
