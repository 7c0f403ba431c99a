"""A fleet of several nodes on this machine: nodes, copies, one group, one endpoint."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sparkserve import checkout, commands, disk, nix
from sparkserve.commands import Safety
from sparkserve.deploy import survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import plans
from sparkserve.group.look import Look
from sparkserve.interrupts import uninterrupted
from sparkserve.local import group_logs, group_rows, health, lock, namespaces, power, triangle
from sparkserve.local.fleets import Serving, Up
from sparkserve.local.group_rows import Missing
from sparkserve.runner import SSH
from sparkserve.terminal import console, phase
from sparkserve.transport import deliver, rollout
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from sparkserve.group.protocol import Status
    from sparkserve.local.fleets import Part
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan
    from sparkserve.runner import Runner

HEALTHY_S = 60.0  # from "up" to the front's first token, on cores that three ranks share


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
                    health.wait(head.serving.endpoint, HEALTHY_S)
                except SparkserveError:
                    if not were_on:
                        group_logs.keep(runner, fleet, checkout.state())
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


class Nodes:
    """A fleet whose nodes are there, or something that is left of them."""

    def __init__(self, fleet: str) -> None:
        self._name = fleet

    def take_down(self) -> bool:
        """Drain the group and end the nodes. Their disks stay, and the ends of their logs here."""
        try:
            there = triangle.load(self._name)
        except SparkserveError as error:
            console.print(f"Not drained: {error}", markup=False)
        else:
            self._drain(there)
        with phase(f"Power off the nodes of {self._name}"):
            return triangle.down(self._name)

    def _drain(self, there: Fleet) -> None:
        with closing(connect(there, Safety.STOPS_SERVING)) as runner:
            try:
                with phase(f"Drain {self._name}"):
                    rollout.stop(runner, dict.fromkeys(there.nodes))
            except SparkserveError as error:
                console.print(f"Not drained: {error}", markup=False)
            group_logs.keep(runner, there, checkout.state())

    def report(self) -> list[dict[str, Any]]:
        """See `There.report`. All nodes are asked at once, each for ten seconds at most."""
        there = triangle.load(self._name)
        looks: dict[str, Look | Missing] = dict.fromkeys(there.nodes, group_rows.OFF)
        on = [node for node in there.nodes if power.init(there, node) is not None]
        with closing(connect(there)) as runner, ThreadPoolExecutor(1) as pool:
            endpoint = pool.submit(health.ask, there.plans[0].serving.endpoint)

            def work(node: str) -> None:
                looks[node] = _look(runner, node)

            deliver.parallel(runner, dict.fromkeys(on), work)
        return group_rows.rows(there.plans[0], looks, endpoint.result())

    def serving(self) -> Serving:
        """See `There.serving`: the front answers for the group."""
        serving = self.plan().serving
        verdict, reason, _ = health.ask(serving.endpoint)
        state = "ready" if verdict == "ok" else verdict or "silent"
        return Serving(state, reason, serving.endpoint, serving.model, key_file=serving.key_file)

    def plan(self) -> Plan:
        """See `There.plan`."""
        return triangle.load(self._name).plans[0]

    def logs(self, lines: int, *, follow: bool, part: Part, node: str | None) -> Generator[str, None, None]:
        """See `There.logs`."""
        there = triangle.load(self._name)
        nodes = [there.plan(node).node.name] if node else there.nodes[:1] if part == "front" else there.nodes
        with closing(connect(there)) as runner:
            found = group_logs.read(runner, nodes, part, lines, follow=follow)
            with closing(found):
                for name, line in found:
                    yield line if len(nodes) == 1 else f"{name} | {line}"


def connect(fleet: Fleet, allow: Safety = Safety.READS_HOSTS) -> Runner:
    """The way to the nodes."""
    return SSH(fleet.ssh_config, allow, fleet.environment, fleet.names.connections)


def _look(runner: Runner, node: str) -> Look | Missing:
    try:
        result = runner.run(node, commands.look())
        return Look.model_validate_json(result.out)
    except SparkserveError as error:
        return Missing("unreachable", error.found)
    except ValidationError:
        said = result.err.strip().splitlines()[-1:]
        return Missing("lost", f"it has no sparkserve of this version ({''.join(said) or 'no message'})")


def build(found: Sequence[Plan], seconds: dict[str, float]) -> dict[str, Path]:
    """The closures of these plans by node, in rank order; `seconds` gets each phase's. Raises `NIX.BUILD`."""
    from sparkserve.pins import BUILDER, fetch

    begin = time.monotonic()
    engine = found[0].engine
    guard = ["cc"] if found[0].guard else []  # it is compiled here
    fetch.fetch([*BUILDER, "node", *guard, engine.package, engine.model], [], None)
    seconds["pins"] = time.monotonic() - begin
    begin = time.monotonic()
    nodes = [plan.node.name for plan in found]
    with phase(f"Build the closures of {', '.join(nodes)}") as detail:
        built = nix.build(list(map(plans.host, found)), on_line=lambda line: detail(line[:100]))
    closures = dict(zip(nodes, addressed(built), strict=True))
    seconds["build"] = time.monotonic() - begin
    return closures


def _state(runner: Runner, head: Plan) -> str:
    status: Status | None = rollout.status(runner, head.node.name)
    return status.state if status else "down"
