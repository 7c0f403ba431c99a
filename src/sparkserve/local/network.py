"""The network of a laptop fleet, as the lines of `ip -batch` that make it. Pure.

Management is a bridge on the machine with a veth pair to every node. A stripe of a cable is a bridge of two
ports in a namespace of its own, with a veth pair to either node: so a cut shows as no carrier at both ends, a
node that is off shows as no carrier to its peers, and what slows or loses packets is not seen inside a node.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from ipaddress import IPv4Address

    from sparkserve.local.names import Names
    from sparkserve.plan import Fabric, Link, Plan


class Wire(NamedTuple):
    """One stripe of one cable, between two ranks."""

    cable: int
    stripe: int
    ends: tuple[int, int]

    @property
    def bridge(self) -> str:
        """The bridge in the middle."""
        return f"c{self.cable}s{self.stripe}"

    def port(self, rank: int) -> str:
        """The bridge's port to `rank`."""
        return f"{self.bridge}r{rank}"


def wires(plans: Sequence[Plan]) -> list[Wire]:
    """All wires of a fleet, each once."""
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for plan in plans:
        for link in fabric(plan).links:
            ends[link.cable, link.stripe] = (min(plan.node.rank, link.peer), max(plan.node.rank, link.peer))
    return [Wire(cable, stripe, pair) for (cable, stripe), pair in sorted(ends.items())]


def fabric(plan: Plan) -> Fabric:
    """The fabric of a plan that must have one."""
    assert plan.fabric is not None, "a fleet of several nodes has a fabric"  # noqa: S101 - Plan checks it
    return plan.fabric


def switch_address(plans: Sequence[Plan]) -> tuple[IPv4Address, IPv4Network]:
    """The machine's own address on the management network: the last one that no node has."""
    management = fabric(plans[0]).management
    network = IPv4Network((management.address, management.prefix), strict=False)
    nodes = {fabric(plan).management.address for plan in plans}
    address = network.broadcast_address - 1
    while address in nodes:
        address -= 1
    return address, network


def switch(names: Names, plans: Sequence[Plan]) -> list[str]:
    """Makes the management switch on the machine."""
    address, network = switch_address(plans)
    return [
        f"link add {names.bridge} type bridge mcast_snooping 0",
        f"link set {names.bridge} addrgenmode none",
        f"address add {address}/{network.prefixlen} dev {names.bridge}",
        f"link set {names.bridge} up",
    ]


def cables(plans: Sequence[Plan]) -> list[str]:
    """Makes the middle of every wire, in the namespace of the wires."""
    mtu = fabric(plans[0]).mtu
    lines = []
    for wire in wires(plans):
        lines += [
            f"link add {wire.bridge} mtu {mtu} type bridge mcast_snooping 0",
            f"link set {wire.bridge} addrgenmode none",
            f"link set {wire.bridge} up",
        ]
    return lines


def plug_switch(names: Names, plan: Plan) -> list[str]:
    """Makes a node's management cable on the machine: one end is in the node, the other in the switch."""
    interface, port = fabric(plan).management.interface, names.port(plan.node.rank)
    mac, netns = hardware_address(names, plan, interface), names.netns(plan.node.name)
    return [
        f"link add {port} type veth peer name {interface} address {mac} netns {netns}",
        f"link set {port} addrgenmode none",
        f"link set {port} master {names.bridge}",
        f"link set {port} up",
    ]


def plug(names: Names, plan: Plan) -> list[str]:
    """Sets up a node's interfaces in its namespace; the cables' far ends go to the namespace of the wires."""
    management = fabric(plan).management
    lines = ["link set lo up", *_address(management.interface, f"{management.address}/{management.prefix}")]
    for link in fabric(plan).links:
        lines += _link(names, plan, link)
    return lines


def _link(names: Names, plan: Plan, link: Link) -> list[str]:
    mtu, mac = fabric(plan).mtu, hardware_address(names, plan, link.interface)
    far = Wire(link.cable, link.stripe, (plan.node.rank, link.peer)).port(plan.node.rank)
    return [
        f"link add {link.interface} mtu {mtu} address {mac} type veth"
        f" peer name {far} mtu {mtu} netns {names.wires}",
        *_address(link.interface, f"{link.address}/{link.prefix}"),
    ]


def _address(interface: str, address: str) -> list[str]:
    return [
        f"link set {interface} addrgenmode none",
        f"address add {address} broadcast + dev {interface}",
        f"link set {interface} up",
    ]


def plug_cables(plan: Plan) -> list[str]:
    """Puts the far ends of a node's cables into their bridges; `carrier` says which of them come up."""
    lines = []
    for link in fabric(plan).links:
        wire = Wire(link.cable, link.stripe, (plan.node.rank, link.peer))
        port = wire.port(plan.node.rank)
        lines += [f"link set {port} addrgenmode none", f"link set {port} master {wire.bridge}"]
    return lines


def carrier(wires: Sequence[Wire], up: Mapping[str, bool]) -> list[str]:
    """Sets the ports of `wires` up or down as they should be.

    `up` has the interfaces of the wires' namespace that exist, and whether each is set up. A wire carries
    when its bridge is up (it is not cut) and both of its ends are there (both nodes are on).
    """
    lines = []
    for wire in wires:
        ports = [wire.port(rank) for rank in wire.ends]
        wanted = up.get(wire.bridge, False) and all(port in up for port in ports)
        lines += [
            f"link set {port} {'up' if wanted else 'down'}"
            for port in ports
            if port in up and up[port] != wanted
        ]
    return lines


def hardware_address(names: Names, plan: Plan, interface: str) -> str:
    """A MAC that stays over power cycles: 02 marks it as given by software."""
    digest = hashlib.sha256(f"{names.tag}/{plan.node.name}/{interface}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (2, *digest[:5]))


def in_wires(names: Names, *argv: str) -> list[str]:
    """The argv that runs `argv` in the namespace of the wires."""
    return ["nsenter", f"--net=/run/netns/{names.wires}", *argv]


def with_rate(names: Names, port: str, mbit: int) -> list[str]:
    """The argv that slows what leaves `port`: 20 ms of packets wait, the rest is lost, as in a switch."""
    shape = ["tbf", "rate", f"{mbit}mbit", "burst", "1mb", "latency", "20ms"]
    return ["tc", "-netns", names.wires, "qdisc", "replace", "dev", port, "root", *shape]


def without_rate(names: Names, port: str) -> list[str]:
    """Undoes `with_rate`."""
    return ["tc", "-netns", names.wires, "qdisc", "delete", "dev", port, "root"]


def loss(port: str, percent: int) -> str:
    """Rules for `nft -f` that drop a random share of what comes in at `port`, in place of earlier ones."""
    # Adding it first makes deleting it right in any case.
    return f"""add table netdev {port}
delete table netdev {port}
table netdev {port} {{
  chain lose {{
    type filter hook ingress device "{port}" priority 0
    numgen random mod 100 < {percent} drop
  }}
}}
"""
