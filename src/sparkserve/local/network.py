"""The network of a laptop fleet, as the lines of `ip -batch` that make it. Pure.

What is not an end lies in a namespace of its own, the wires: so a machine's firewall (Docker's drops what
bridges forward) has no say in it. Management is a bridge with a veth pair to every node, and one to the
machine. A stripe of a cable is a bridge of two ports with a veth pair to either node: so a cut shows as no
carrier at both ends, a node that is off as none to its peers, and what slows or loses packets is not seen in
a node.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from ipaddress import IPv4Address

    from sparkserve.local.names import Names
    from sparkserve.plan import Fabric, Link, Management, Plan


class Wire(NamedTuple):
    """One stripe of one rail, between the ranks `ends`: two on a cable, all on a switch."""

    rail: int
    stripe: int
    ends: tuple[int, ...]

    @property
    def bridge(self) -> str:
        """The bridge in the middle."""
        return f"c{self.rail}s{self.stripe}"

    def port(self, rank: int) -> str:
        """The bridge's port to `rank`."""
        return f"{self.bridge}r{rank}"


def wires(plans: Sequence[Plan]) -> list[Wire]:
    """All wires of a fleet, each once."""
    return sorted({_wire(plan, link) for plan in plans for link in fabric(plan).links})


def _wire(plan: Plan, link: Link) -> Wire:
    ends = sorted({plan.node.rank, *(peer.rank for peer in link.peers)})
    return Wire(link.rail, link.stripe, tuple(ends))


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


def uplink(names: Names, plans: Sequence[Plan]) -> list[str]:
    """Makes the machine's own cable to the switch, whose other end is in the namespace of the wires."""
    address, network = switch_address(plans)
    return [
        f"link add {names.interface} type veth peer name uplink netns {names.wires}",
        f"link set {names.interface} addrgenmode none",
        f"address add {address}/{network.prefixlen} dev {names.interface}",
        f"link set {names.interface} up",
    ]


def wiring(plans: Sequence[Plan]) -> list[str]:
    """Makes the switch with the uplink in it, and the middle of every wire, in the namespace of the wires."""
    mtu = fabric(plans[0]).mtu
    return [
        *_bridge("switch", 1500),
        *_port("uplink", "switch"),
        "link set uplink up",
        *(line for wire in wires(plans) for line in _bridge(wire.bridge, mtu)),
    ]


def _bridge(name: str, mtu: int) -> list[str]:
    return [
        f"link add {name} mtu {mtu} type bridge mcast_snooping 0",
        f"link set {name} addrgenmode none",
        f"link set {name} up",
    ]


def _port(port: str, bridge: str) -> list[str]:
    return [f"link set {port} addrgenmode none", f"link set {port} master {bridge}"]


def plug(names: Names, plan: Plan) -> list[str]:
    """Makes all interfaces of a node, in its namespace; their other ends go to the namespace of the wires."""
    management = fabric(plan).management
    lines = [
        "link set lo up",
        *_interface(names, plan, management, 1500, port(plan.node.rank)),
    ]
    for link in fabric(plan).links:
        far, mtu = _wire(plan, link).port(plan.node.rank), fabric(plan).mtu
        made = _interface(names, plan, link, mtu, far)
        # As it comes out of the box: no address, 1500 bytes, down. The node's own netplan does the rest.
        lines += [made[0].replace(f"mtu {mtu}", "mtu 1500", 1), made[1]] if by_node(plan) else made
    return lines


def by_node(plan: Plan) -> bool:
    """Whether a node's closure brings what gives its cables their addresses, so that nobody else does."""
    return any(path.startswith("/etc/netplan/") for path in plan.host.files)


def port(rank: int) -> str:
    """The switch's port of a node."""
    return f"switch{rank}"


def _interface(names: Names, plan: Plan, near: Management | Link, mtu: int, far: str) -> list[str]:
    mac = hardware_address(names, plan, near.interface)
    return [
        f"link add {near.interface} mtu {mtu} address {mac} type veth"
        f" peer name {far} mtu {mtu} netns {names.wires}",
        f"link set {near.interface} addrgenmode none",
        f"address add {near.address}/{near.prefix} broadcast + dev {near.interface}",
        f"link set {near.interface} up",
    ]


def plug_far(plan: Plan) -> list[str]:
    """Puts the far ends of a node's interfaces into their bridges; `carrier` says which cables come up."""
    rank = plan.node.rank
    lines = [*_port(port(rank), "switch"), f"link set {port(rank)} up"]
    for link in fabric(plan).links:
        wire = _wire(plan, link)
        lines += _port(wire.port(rank), wire.bridge)
    return lines


def carrier(wires: Sequence[Wire], up: Mapping[str, bool]) -> list[str]:
    """Sets the ports of `wires` up or down as they should be.

    `up` has the interfaces of the wires' namespace that exist, and whether each is set up. A wire carries
    when its bridge is up (it is not cut) and two of its ends are there (their nodes are on).
    """
    lines = []
    for wire in wires:
        ports = [wire.port(rank) for rank in wire.ends]
        wanted = up.get(wire.bridge, False) and sum(port in up for port in ports) > 1
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
