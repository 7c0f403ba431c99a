"""Plugs nodes into the network and unplugs them; network.py says what that takes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve.local import names as naming
from sparkserve.local import network

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.local.names import Names
    from sparkserve.local.record import Fleet
    from sparkserve.local.tools import Tools
    from sparkserve.plan import Plan

_GONE_S = 5.0


def make(fleet: Fleet) -> None:
    """Make switch, uplink and cables, without nodes, unless they are there. Raises `HOST.SYSTEM`."""
    if not (naming.NETNS / fleet.names.wires).exists():
        fleet.tools.run(["ip", "netns", "add", fleet.names.wires])
        batch(fleet.tools, network.uplink(fleet.names, fleet.plans))
        batch(fleet.tools, network.wiring(fleet.plans), netns=fleet.names.wires)


def plug(fleet: Fleet, plan: Plan) -> None:
    """Give a node its namespace with all interfaces. Raises `HOST.SYSTEM`."""
    netns = fleet.names.netns(plan.node.name)
    fleet.tools.run(["ip", "netns", "add", netns])
    batch(fleet.tools, network.plug(fleet.names, plan), netns=netns)
    batch(fleet.tools, network.plug_far(plan), netns=fleet.names.wires)
    settle(fleet)


def unplug(fleet: Fleet, plan: Plan) -> None:
    """Remove a node's namespace with its ends of the cables; its peers then see no carrier."""
    remove(fleet.tools, fleet.names.netns(plan.node.name))
    rank = plan.node.rank
    ends = {
        network.port(rank),
        *(wire.port(rank) for wire in network.wires(fleet.plans) if rank in wire.ends),
    }
    deadline = time.monotonic() + _GONE_S
    # The kernel takes a namespace apart after the command has returned, and not before the last socket in it
    # is closed, which may be one of the keeper. The names are needed again, so they go now.
    while (left := ends & {link["ifname"] for link in _links(fleet)}) and time.monotonic() < deadline:
        lines = "".join(f"link delete {end}\n" for end in sorted(left))
        fleet.tools.attempt(["ip", "-netns", fleet.names.wires, "-force", "-batch", "-"], text=lines)
    settle(fleet)


def remove(tools: Tools, netns: str) -> None:
    """Remove a network namespace, if it is there."""
    if (naming.NETNS / netns).exists():
        tools.run(["ip", "netns", "delete", netns])


def settle(fleet: Fleet) -> None:
    """Bring the cables' ports to what they should be, by what is there."""
    up = {link["ifname"]: "UP" in link["flags"] for link in _links(fleet)}
    batch(fleet.tools, network.carrier(network.wires(fleet.plans), up), netns=fleet.names.wires)


def batch(tools: Tools, lines: Sequence[str], *, netns: str | None = None) -> None:
    """Run lines of `ip -batch`, in a network namespace. Raises `HOST.SYSTEM`."""
    if lines:
        where = [] if netns is None else ["-netns", netns]
        tools.run(["ip", *where, "-batch", "-"], text="".join(f"{line}\n" for line in lines))


def namespaces(names: Names) -> list[str]:
    """The fleet's network namespaces that are there."""
    return sorted(path.name for path in naming.NETNS.glob(f"{names.group}-*"))


def has_interface(names: Names) -> bool:
    """Whether the fleet's interface on the machine itself is there."""
    return Path("/sys/class/net", names.interface).exists()


def take_down(names: Names, tools: Tools) -> None:
    """Remove all of the fleet's network, whatever is left of it."""
    for netns in namespaces(names):
        remove(tools, netns)
    if has_interface(names):
        # It goes by itself, a moment after the namespace of its other end; after an accident it may not.
        tools.attempt(["ip", "link", "delete", names.interface])
    deadline = time.monotonic() + _GONE_S
    while has_interface(names) and time.monotonic() < deadline:
        time.sleep(0.01)


def _links(fleet: Fleet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        fleet.tools.run(["ip", "-netns", fleet.names.wires, "-json", "link", "show"])
    )
    return found
