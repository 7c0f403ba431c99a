"""The nodes' counters as an operator asks for them, and where Prometheus finds them."""

from __future__ import annotations

import http.client
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.group.launch import parts
from sparkserve.metrics import scrape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Plan

ASK_S = 10.0  # the service's own patience with nvidia-smi, and a loaded node


class Told(NamedTuple):
    """What a node told: its samples by name and labels, or `error`, why there are none."""

    samples: dict[str, float]
    error: str = ""


def address(plan: Plan) -> tuple[str, int]:
    """Where the plan's node serves its counters. Raises `GROUP.STATE` for a fleet of one node."""
    fabric, _ = parts(plan)
    assert plan.metrics is not None  # noqa: S101 - Plan checks it
    return str(fabric.management.address), plan.metrics.port


def ask(plans: Sequence[Plan]) -> dict[str, Told]:
    """All nodes at once, by name. Raises `GROUP.STATE` for a fleet of one node."""
    places = [address(plan) for plan in plans]
    with ThreadPoolExecutor(len(places)) as pool:
        told = pool.map(_ask, places)
        return {plan.node.name: each for plan, each in zip(plans, told, strict=True)}


def _ask(place: tuple[str, int]) -> Told:
    host, port = place
    # Not urllib, which would ask a proxy of the environment.
    connection = http.client.HTTPConnection(host, port, timeout=ASK_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != 200:
            return Told({}, f"{host}:{port} answers {answer.status}")
        return Told(scrape.read(answer.read().decode()))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Told({}, f"{host}:{port}: {error or 'no answer'}")
    finally:
        connection.close()


def targets(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """What file_sd_configs of Prometheus reads: every node, and the engine by way of the head.

    The labels `fleet` and `node` are what alerts and dashboard go by. Raises `GROUP.STATE`.
    """
    found = []
    for plan in plans:
        host, port = address(plan)
        labels = {"fleet": plan.fleet.name, "node": plan.node.name}
        found.append({"targets": [f"{host}:{port}"], "labels": {**labels, "part": "node"}})
        if plan.node.rank == 0:
            engine = {**labels, "part": "engine", "__metrics_path__": "/engine"}
            found.append({"targets": [f"{host}:{port}"], "labels": engine})
    return found
