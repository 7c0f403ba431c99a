"""The names of a laptop fleet, and every line that makes, cuts or slows its network."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from local_values import NAMES, PLANS, TAG

from sparkserve.local import machine, network
from sparkserve.local.names import Names
from sparkserve.plan import Peer, Plan

MAC = re.compile(r"02(:[0-9a-f]{2}){5}")
WIRES = network.wires(PLANS)


def without_macs(lines: list[str]) -> list[str]:
    return [MAC.sub("MAC", line) for line in lines]


def test_names_hold_a_tag_of_the_folder_and_fit() -> None:
    assert re.fullmatch("[0-9a-f]{6}", TAG)
    assert NAMES.netns("spark-1") == f"sparkserve-desk-{TAG}-spark-1"
    assert NAMES.interface == f"spk-{TAG}"
    assert str(NAMES.ssh_config) == f"/run/sparkserve-desk-{TAG}/ssh_config"
    assert Names("desk", Path("/elsewhere")).tag != TAG
    longest = Names("a" * 31, Path("/x"))
    assert len(longest.interface) <= 15
    # sun_path, with what ssh adds while it makes the socket.
    assert len(f"{longest.run}/{'n' * 30}.0123456789abcdef") < 108


def test_the_triangle_has_six_wires() -> None:
    assert [(wire.bridge, wire.ends) for wire in WIRES] == [
        ("c0s0", (0, 1)),
        ("c0s1", (0, 1)),
        ("c1s0", (1, 2)),
        ("c1s1", (1, 2)),
        ("c2s0", (0, 2)),
        ("c2s1", (0, 2)),
    ]


def test_the_machine_gets_the_last_address_that_is_free() -> None:
    address, wanted = network.switch_address(PLANS)
    assert (str(address), str(wanted)) == ("10.77.0.254", "10.77.0.0/24")


def test_uplink_switch_and_cables() -> None:
    assert network.uplink(NAMES, PLANS) == [
        f"link add spk-{TAG} type veth peer name uplink netns sparkserve-desk-{TAG}-wires",
        f"link set spk-{TAG} addrgenmode none",
        f"address add 10.77.0.254/24 dev spk-{TAG}",
        f"link set spk-{TAG} up",
    ]
    bridges = [("switch", 1500), *((wire.bridge, 9000) for wire in WIRES)]
    made = [
        [
            f"link add {bridge} mtu {mtu} type bridge mcast_snooping 0",
            f"link set {bridge} addrgenmode none",
            f"link set {bridge} up",
        ]
        for bridge, mtu in bridges
    ]
    plugged = ["link set uplink addrgenmode none", "link set uplink master switch", "link set uplink up"]
    assert network.wiring(PLANS) == [*made[0], *plugged, *(line for lines in made[1:] for line in lines)]


def bare(plan: Plan) -> Plan:
    """The plan without what its closure puts on the operating system."""
    return plan.model_copy(update={"host": plan.host.model_copy(update={"files": {}})})


def test_the_plugs_of_a_node() -> None:
    wires = f"sparkserve-desk-{TAG}-wires"
    expected = ["link set lo up"]
    far = []
    for interface, address, mtu, port, bridge in (
        ("enP7s7", "10.77.0.2", 1500, "switch1", "switch"),
        ("enp1s0f1np1", "10.12.0.2", 9000, "c0s0r1", "c0s0"),
        ("enP2p1s0f1np1", "10.12.1.2", 9000, "c0s1r1", "c0s1"),
        ("enp1s0f0np0", "10.23.0.2", 9000, "c1s0r1", "c1s0"),
        ("enP2p1s0f0np0", "10.23.1.2", 9000, "c1s1r1", "c1s1"),
    ):
        expected += [
            f"link add {interface} mtu {mtu} address MAC type veth peer name {port} mtu {mtu} netns {wires}",
            f"link set {interface} addrgenmode none",
            f"address add {address}/24 broadcast + dev {interface}",
            f"link set {interface} up",
        ]
        far += [f"link set {port} addrgenmode none", f"link set {port} master {bridge}"]
    far.insert(2, "link set switch1 up")
    assert without_macs(network.plug(NAMES, bare(PLANS[1]))) == expected
    # With netplan in its closure the node gets its cables as out of the box, and does the rest by itself.
    own = [
        line.replace("mtu 9000 address", "mtu 1500 address")
        for line in expected
        if not line.startswith(("address add 10.12", "address add 10.23"))
        and not (line.endswith(" up") and "np" in line)
    ]
    assert without_macs(network.plug(NAMES, PLANS[1])) == own
    assert network.plug_far(PLANS[1]) == far
    macs = {
        mac
        for plan in PLANS
        for line in network.plug(NAMES, plan)
        for mac in re.findall(r"02(?::\w\w){5}", line)
    }
    assert len(macs) == 15


def test_a_wire_carries_when_both_ends_are_there_and_it_is_not_cut() -> None:
    all_up = {
        name: True for wire in WIRES for name in (wire.bridge, *(wire.port(rank) for rank in wire.ends))
    }
    assert network.carrier(WIRES, all_up) == []
    cut = {**all_up, "c2s1": False}
    assert network.carrier(WIRES, cut) == ["link set c2s1r0 down", "link set c2s1r2 down"]
    off = {name: up for name, up in all_up.items() if not name.endswith("r1")}
    assert network.carrier(WIRES, off) == [
        f"link set {port} down" for port in ("c0s0r0", "c0s1r0", "c1s0r2", "c1s1r2")
    ]
    back = {**all_up, "c0s0r0": False, "c0s0r1": False}
    assert network.carrier(WIRES, back) == ["link set c0s0r0 up", "link set c0s0r1 up"]
    assert network.carrier(WIRES, {}) == []


def test_bad_cables() -> None:
    wires = f"sparkserve-desk-{TAG}-wires"
    assert " ".join(network.with_rate(NAMES, "c0s0r1", 100)) == (
        f"tc -netns {wires} qdisc replace dev c0s0r1 root tbf rate 100mbit burst 1mb latency 20ms"
    )
    assert (
        " ".join(network.without_rate(NAMES, "c0s0r1")) == f"tc -netns {wires} qdisc delete dev c0s0r1 root"
    )
    assert " ".join(network.in_wires(NAMES, "nft", "-f", "-")) == f"nsenter --net=/run/netns/{wires} nft -f -"
    assert network.loss("c0s0r1", 20) == (
        "add table netdev c0s0r1\n"
        "delete table netdev c0s0r1\n"
        "table netdev c0s0r1 {\n"
        "  chain lose {\n"
        '    type filter hook ingress device "c0s0r1" priority 0\n'
        "    numgen random mod 100 < 20 drop\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("address", "route", "found"),
    [
        (("eth0", "10.77.0.9", 24), None, "10.77.0.9/24 on eth0"),
        (("eth0", "10.77.3.9", 16), None, "10.77.3.9/16 on eth0"),
        (("own", "10.77.0.254", 24), None, None),
        (("eth0", "10.78.0.9", 24), None, None),
        (
            None,
            {"dst": "10.77.0.128/25", "gateway": "10.1.1.1", "dev": "tun0"},
            "a route to 10.77.0.128/25 through tun0",
        ),
        (None, {"dst": "10.77.0.7", "dev": "tun0"}, "a route to 10.77.0.7 through tun0"),
        (None, {"dst": "10.0.0.0/8", "dev": "tun0"}, "a route to 10.0.0.0/8 through tun0"),
        (None, {"dst": "10.0.0.0/8", "gateway": "10.1.1.1", "dev": "tun0"}, None),
        (None, {"dst": "default", "gateway": "10.1.1.1", "dev": "eth0"}, None),
        (None, {"dst": "10.77.0.0/24", "dev": "own"}, None),
        (None, {"type": "blackhole", "dst": "10.77.0.0/24"}, "a route to 10.77.0.0/24 through no interface"),
    ],
)
def test_who_uses_the_network(
    address: tuple[str, str, int] | None, route: dict[str, Any] | None, found: str | None
) -> None:
    addresses = []
    if address is not None:
        name, local, prefix = address
        addresses = [{"ifname": name, "addr_info": [{"local": local, "prefixlen": prefix}]}]
    routes = [] if route is None else [route]
    assert machine.user_of(IPv4Network("10.77.0.0/24"), addresses, routes, "own") == found


def test_a_switch_is_one_bridge_that_a_node_may_leave() -> None:
    plans = [switched(plan) for plan in PLANS]
    wires = network.wires(plans)
    assert [(wire.bridge, wire.ends) for wire in wires] == [("c0s0", (0, 1, 2))]
    assert network.plug_far(plans[1])[-2:] == [
        "link set c0s0r1 addrgenmode none",
        "link set c0s0r1 master c0s0",
    ]
    assert network.carrier(wires, {"c0s0": True, "c0s0r0": True, "c0s0r2": True}) == []
    assert network.carrier(wires, {"c0s0": True, "c0s0r0": True}) == ["link set c0s0r0 down"]


def switched(plan: Plan) -> Plan:
    """The plan with one link, to all others."""
    assert plan.fabric is not None
    peers = tuple(
        Peer(rank=rank, address=IPv4Address(f"10.100.0.{rank + 1}"))
        for rank in range(3)
        if rank != plan.node.rank
    )
    link = plan.fabric.links[0].model_copy(update={"rail": 0, "stripe": 0, "peers": peers})
    return plan.model_copy(update={"fabric": plan.fabric.model_copy(update={"links": (link,)})})
