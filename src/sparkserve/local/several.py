"""A fleet of several nodes on this machine: nodes, copies, one group, one endpoint."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sparkserve import checkout, commands, disk, nix
from sparkserve.commands import Safety
from sparkserve.errors import SparkserveError
from sparkserve.fleet import plans
from sparkserve.local import lock, namespaces, triangle
from sparkserve.local.fleets import Serving, Up
from sparkserve.output import console, phase
from sparkserve.runner import SSH, Runner
from sparkserve.transport import deliver, rollout
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.group.protocol import Status
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan

HEALTHY_S = 60.0  # from "up" to the front's first token, on cores that three ranks share


def bring_up(found: Sequence[Plan]) -> Up:
    """Make the fleet of these plans (in rank order) serve. Raises any error of the phases.

    Nodes that were down before are down again after an error or Ctrl-C.
    """
    name, head = found[0].fleet.name, found[0]
    seconds: dict[str, float] = {}
    with disk.guarded(checkout.state()), lock.held(checkout.state(), name):
        namespaces.check()
        disk.check(checkout.state())
        closures = _build(found, seconds)
        were_on = exists(name)
        try:
            begin = time.monotonic()
            with phase("Power the nodes on"):
                fleet = triangle.power_on(found)
            seconds["nodes"] = time.monotonic() - begin
            begin = time.monotonic()
            with _runner(fleet) as runner:
                deliver.deliver(runner, closures)
                seconds["copy"] = time.monotonic() - begin
                begin = time.monotonic()
                already = not rollout.put_into_effect(runner, closures) and _state(runner, head) == "up"
                status = rollout.start_group(runner, head.node.name)
            _wait_until_healthy(head)
            seconds["ready"] = time.monotonic() - begin
        except BaseException:
            if not were_on:
                triangle.down(name)
            raise
    return Up(head.serving.model, head.serving.endpoint, status.fleet_id, already, None, seconds)


def take_down(fleet: str) -> bool:
    """Drain the group and end the nodes; False when there are none. Their disks stay."""
    if not exists(fleet):
        return False
    with lock.held(checkout.state(), fleet):
        try:
            there = triangle.load(fleet)
            with phase(f"Drain {fleet}"), _runner(there) as runner:
                rollout.stop(runner, dict.fromkeys(there.nodes))
        except SparkserveError as error:
            console.print(f"Not drained: {error}")
        with phase(f"Power off the nodes of {fleet}"):
            return triangle.down(fleet)


def exists(fleet: str) -> bool:
    """Whether nodes of this fleet are there, or something that is left of them."""
    return triangle.exists(fleet)


def report(fleet: str) -> list[dict[str, Any]]:
    """Each node: `ready` when its rank serves in a group that is up, else what it is in, and why."""
    there = triangle.load(fleet)
    with _runner(there) as runner:
        status = rollout.status(runner, there.nodes[0])
    rows = []
    for node in triangle.status(fleet).nodes:
        rank = next((rank for rank in status.ranks if rank.node == node.node), None) if status else None
        row: dict[str, Any] = {"node": node.node, "endpoint": there.plans[0].serving.endpoint}
        if not node.on:
            row |= {"state": "off"}
        elif status is None or rank is None or not rank.connected:
            row |= {"state": "lost", "reason": "its supervisor is out of reach"}
        else:
            state = "ready" if status.state == "up" else status.state
            row |= {"state": state, "fleet_id": status.fleet_id, "reason": rank.trouble or status.reason}
            row |= {"phase": rank.phase, "uptime_s": time.time() - status.since if state == "ready" else None}
        rows.append(row)
    return rows


def serving(fleet: str) -> Serving:
    """Who answers for the group: its front, which has a canary of its own."""
    serving = triangle.load(fleet).plans[0].serving
    states = [row["state"] for row in report(fleet)]
    state = "ready" if all(state == "ready" for state in states) else "starting"
    return Serving(state, serving.endpoint, serving.model, lambda seconds: None)


def logs(fleet: str, lines: int) -> dict[str, list[str]]:
    """The last lines of every rank's newest boot, by node; a node that has none is left out."""
    there = triangle.load(fleet)
    with _runner(there) as runner:
        results = {node: runner.run(node, commands.rank_log(lines)) for node in there.nodes}
    return {node: result.out.splitlines() for node, result in results.items() if result.code == 0}


def _runner(fleet: Fleet) -> SSH:
    return SSH(fleet.ssh_config, Safety.STOPS_SERVING, fleet.environment)


def _build(found: Sequence[Plan], seconds: dict[str, float]) -> dict[str, Path]:
    from sparkserve.pins import BUILDER, fetch

    begin = time.monotonic()
    engine = found[0].engine
    fetch.fetch([*BUILDER, "node", engine.package, engine.model], [], None)
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


def _wait_until_healthy(head: Plan) -> None:
    """Wait until the front has seen a token. Raises `ENGINE.READY`."""
    import httpx

    url = f"{head.serving.endpoint}/health"
    found = "no answer"
    begin = time.monotonic()
    with phase("Wait for a real answer"):
        while time.monotonic() - begin < HEALTHY_S:
            try:
                answer = httpx.get(url, timeout=5.0)
                if answer.status_code == 200:
                    return
                found = f"{answer.status_code} {answer.text[:200]}"
            except httpx.HTTPError as error:
                found = str(error) or type(error).__name__
            time.sleep(0.2)
    raise SparkserveError(
        "ENGINE.READY",
        expected=f"a token from the whole group within {HEALTHY_S:.0f} s",
        found=found,
        where=url,
        do="./sparkserve status says which rank it waits for.",
    )
