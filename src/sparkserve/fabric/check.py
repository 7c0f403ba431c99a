"""Compares a node's plan with what the host really has. It reads, and sends one packet to each peer."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Interface
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.fabric.cabling import End, fabric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sparkserve.fabric.host import Facts, Interface
    from sparkserve.plan import Link, Management, Peer, Plan

HEADERS = 28  # bytes of IPv4 and ICMP in front of a ping's payload
GID_INDEX = "NCCL_IB_GID_INDEX"
_ACTIVATE = "Activate the host closure again; netplan and networkctl say why it does not hold."
_NAMES = "Correct ports of this node in fleet.nodes."


class Difference(NamedTuple):
    """One thing that is not as planned: where it is, and what to do."""

    where: str
    expected: str
    found: str
    do: str


def differences(plan: Plan, facts: Facts, reaches: Callable[[Link, Peer], str | None]) -> list[Difference]:
    """What is not as planned. `reaches` says what went wrong on the way to a peer, None for nothing.

    It may raise FileNotFoundError when it has no program to ask with; no peer is asked then. Raises
    `GROUP.STATE` for the plan of a single node.
    """
    planned = fabric(plan)
    found = list(_management(planned.management, facts))
    whole = []
    for link in planned.links:
        wrong = list(_link(plan, link, facts))
        found += wrong
        whole += [] if wrong else [(link, peer) for peer in link.peers]
    found += _sysctls(plan, facts)
    # Only over interfaces that are as planned: what is wrong with others is said already.
    with ThreadPoolExecutor(len(whole) or 1) as pool:
        answers = pool.map(lambda way: reaches(*way), whole)
        try:
            for (link, peer), answer in zip(whole, answers, strict=True):
                found += _unreached(plan, link, peer, answer)
        except FileNotFoundError:
            found.append(
                Difference("ping", "this program", "none", "Install it: apt-get install iputils-ping.")
            )
    return found


def _management(planned: Management, facts: Facts) -> Iterator[Difference]:
    real = facts.interfaces.get(planned.interface)
    if real is None:
        there = " ".join(facts.interfaces) or "no interface"
        yield Difference(planned.interface, "this interface", there, "Set fabric.managementInterface.")
    else:
        do = "Give the host this address, or correct fleet.nodes and fabric.managementPrefix."
        yield from _address(planned, real, do)


def _link(plan: Plan, link: Link, facts: Facts) -> Iterator[Difference]:
    where = link.interface
    real = facts.interfaces.get(where)
    if real is None:
        same = [name for name, other in facts.interfaces.items() if other.pci == link.pci]
        found = f"{same[0]} at {link.pci}" if same else f"none, and nothing at {link.pci}"
        yield Difference(where, "this interface", found, _NAMES)
        return
    if not real.carrier:
        peers = End(plan, link).peers
        found = "it is set down" if real.carrier is None else "no signal"
        do = (
            f"Plug in or change the cable from port {link.port} to {peers}."
            if real.carrier is False
            else _ACTIVATE
        )
        yield Difference(where, "a signal", found, do)
    yield from _address(link, real, _ACTIVATE)
    others = [str(address) for address in real.addresses if address.ip != link.address]
    if 0 < len(others) < len(real.addresses):
        found = f"also {' '.join(others)}"
        yield Difference(where, "the address of the plan alone", found, "Remove what else sets addresses.")
    mtu = fabric(plan).mtu
    if real.mtu != mtu:
        yield Difference(where, f"MTU {mtu}", str(real.mtu), _ACTIVATE)
    if real.ipv6:
        found = " ".join(str(address) for address in real.ipv6)
        yield Difference(
            where, "no IPv6 address, which moves the IPv4 one in the GID table", found, _ACTIVATE
        )
    if real.pci not in (None, link.pci):
        yield Difference(where, f"PCI address {link.pci}", str(real.pci), _NAMES)
    yield from _rdma(plan, link, real, facts)


def _address(planned: Management | Link, real: Interface, do: str) -> Iterator[Difference]:
    wanted = IPv4Interface(f"{planned.address}/{planned.prefix}")
    if wanted not in real.addresses:
        found = " ".join(str(address) for address in real.addresses) or "no address"
        yield Difference(planned.interface, f"address {wanted}", found, do)


def rdma(plan: Plan, facts: Facts) -> list[Difference]:
    """The same of RDMA devices alone: what packets over the cables do not show."""
    real = facts.interfaces
    links = [link for link in fabric(plan).links if link.interface in real]
    return [each for link in links for each in _rdma(plan, link, real[link.interface], facts)]


def _rdma(plan: Plan, link: Link, real: Interface, facts: Facts) -> Iterator[Difference]:
    # An engine without NCCL uses no RDMA.
    if fabric(plan).nccl is None:
        return
    if real.hca != link.hca:
        found = real.hca or "none"
        do = _NAMES if real.hca else "Load mlx5_ib; lspci shows whether the card is there."
        yield Difference(link.interface, f"RDMA device {link.hca}", found, do)
        return
    index = plan.engine.env.get(GID_INDEX)
    mine = [
        gid for gid in facts.gids.get(link.hca, ()) if gid.address == link.address and gid.type == "RoCE v2"
    ]
    if not mine:
        found = " ".join(f"{gid.address} ({gid.type})" for gid in facts.gids.get(link.hca, ())) or "none"
        do = f"Set {link.interface} down and up while nothing uses RDMA."
        yield Difference(link.hca, f"a RoCE v2 GID with {link.address}", found, do)
    elif index is not None and index not in [str(gid.place) for gid in mine]:
        found = " ".join(str(gid.place) for gid in mine)
        do = "Leave fabric.gidIndex out, so that NCCL finds it on each device."
        yield Difference(link.hca, f"the GID at index {index}", f"at {found}", do)


def _sysctls(plan: Plan, facts: Facts) -> Iterator[Difference]:
    for name, value in plan.host.sysctls.items():
        if name.startswith("net."):
            found = facts.sysctl(name)
            if found not in (None, value):  # None: its interface is not there, which is said already
                yield Difference(name, value, str(found), "Activate the host closure again.")


def _unreached(plan: Plan, link: Link, peer: Peer, answer: str | None) -> Iterator[Difference]:
    if answer is not None:
        name = plan.fleet.nodes[peer.rank].name
        expected = f"an answer of {name} ({peer.address}) to a packet of {fabric(plan).mtu} bytes"
        do = f"Look at the power and the MTU of {name}, and whether the cable is that of the plan."
        yield Difference(link.interface, expected, answer, do)


def ping(plan: Plan) -> Callable[[Link, Peer], str | None]:
    """Reaches peers by `ping`, in packets of the cables' size that nobody on the way may cut."""

    def reaches(link: Link, peer: Peer) -> str | None:
        size = str(fabric(plan).mtu - HEADERS)
        argv = ["ping", "-q", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", size, "-I", link.interface]
        try:
            done = subprocess.run([*argv, str(peer.address)], capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired as error:
            return str(error)
        return None if done.returncode == 0 else done.stderr.strip() or "none"

    return reaches
