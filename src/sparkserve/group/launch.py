"""What a rank's engine is told beyond its plan: its place in the group, and what is new on every boot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.adapters.contract import Link
from sparkserve.adapters.plugin import SCHEMA, VARIABLE
from sparkserve.group import wire

if TYPE_CHECKING:
    from sparkserve.plan import Fabric, Group, Plan

LOOPBACK = "127.0.0.1"


class Launch(NamedTuple):
    """Arguments after the plan's, and variables over the plan's."""

    args: tuple[str, ...]
    env: dict[str, str]


def launch(plan: Plan, *, port: int) -> Launch:
    """The place of `plan`'s node in the boot whose ranks meet at `port` of the head.

    Every boot has a port of its own: a rank of an earlier one that is still alive is not met.
    """
    fabric, group = parts(plan)
    head = plan.fleet.nodes[0]
    args = [
        *["--tp-size", str(group.size), "--nnodes", str(group.size), "--node-rank", str(plan.node.rank)],
        *["--dist-init-addr", f"{head.address}:{port}"],
        # Loopback: the front beside it is the only way in.
        *["--host", LOOPBACK, "--port", str(group.engine_port)],
    ]
    # Without a default route SGLang and gloo would guess the wrong address.
    env = {
        "SGLANG_HOST_IP": str(fabric.management.address),
        "GLOO_SOCKET_IFNAME": fabric.management.interface,
        VARIABLE: json.dumps(
            {
                "schema": SCHEMA,
                "rank": plan.node.rank,
                "size": group.size,
                "links": [link._asdict() for link in _links(fabric)],
                "adapters": [adapter.model_dump(mode="json") for adapter in plan.adapters],
            },
            separators=(",", ":"),
            sort_keys=True,
        ),
    }
    return Launch(tuple(args), env)


def meeting_port(plan: Plan, number: int) -> int:
    """The port of the head where the ranks of boot `number` meet. Boots take turns with them."""
    first, last = parts(plan)[1].rendezvous_ports
    return first + number % (last - first + 1)


def _links(fabric: Fabric) -> list[Link]:
    """The links as adapters see them: to each peer, whose stripes count over all rails that lead to it."""
    found: list[Link] = []
    # Both ends count in the order of rails, so that a stripe has one number at both.
    for link in fabric.links:
        for peer in link.peers:
            stripe = sum(1 for other in found if other.peer == peer.rank)
            ends = str(link.address), peer.rank, str(peer.address)
            found.append(Link(link.interface, *ends, stripe))
    return found


def parts(plan: Plan) -> tuple[Fabric, Group]:
    """The plan's fabric and group. Raises `GROUP.STATE` for a plan of a single node."""
    if plan.fabric is None or plan.group is None:
        raise wire.no_group(f"topology {plan.fleet.topology}", plan.fleet.name)
    return plan.fabric, plan.group
