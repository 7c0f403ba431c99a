"""The cables of this node: links, addresses, packets. What RDMA makes of them is in rdma.py."""

from __future__ import annotations

import ipaddress
import re
import shlex
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, none_wrong, quoted, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

APPLY = "sudo netplan apply, with the group stopped (./sparkserve down)"


def _net(link: dict[str, object]) -> str:
    return f"/sys/class/net/{link['interface']}"


def _there(n: Node) -> list[dict[str, object]]:
    """The planned links whose interface exists: a missing one is FABRIC.LINK's."""
    found = [link for link in n.links() if n.exists(f"{_net(link)}/mtu")]
    if not found:
        raise NotApplicable("none of the plan's interfaces is there: see FABRIC.LINK")
    return found


@check(
    "FABRIC.LINK",
    "Every interface of a cable exists and has a carrier.",
    "error",
    "mia, issues",
    fix="look at both ends of the cable with ip link; reseat it; sudo ip link set INTERFACE up",
)
def link(n: Node) -> Verdict:
    wrong, down = [], []
    for each in n.links():
        path = f"{_net(each)}/operstate"
        state = n.text(path).strip() if n.exists(path) else "not there"
        if state != "up":
            ranks = " and ".join(str(peer.get("rank")) for peer in each.get("peers", []))
            wrong.append(f"{each['interface']} (to rank {ranks}) is {state}")
            down.append(each["interface"])
    fix = (
        f'for i in {quoted(*down)}; do sudo ip link set "$i" up; done; '
        "then look at both ends, and reseat the cable"
    )
    return none_wrong(wrong, "up", "all are up", "/sys/class/net/*/operstate", fix)


@check(
    "FABRIC.ADDRESS",
    "Every interface of a cable has the plan's address and prefix.",
    "error",
    "issues, owen",
    fix=APPLY,
)
def address(n: Node) -> Verdict:
    here = n.addresses()
    wrong = []
    for each in n.links():
        planned = (str(each["interface"]), str(each["address"]), int(each["prefix"]))
        if planned not in here:
            has = ", ".join(f"{a}/{p}" for name, a, p in here if name == planned[0]) or "none"
            wrong.append(f"{planned[0]} has {has} and not {planned[1]}/{planned[2]}")
    return none_wrong(wrong, "the plan's addresses", "all are there", "ip addr show")


@check(
    "FABRIC.MTU",
    "Every interface of a cable has the plan's MTU: a firmware update puts one end back to 1500.",
    "error",
    "issues, owen",
    fix=APPLY,
)
def mtu(n: Node) -> Verdict:
    planned = int(n.plan("fabric", "mtu"))
    seen = {str(each["interface"]): n.value(f"{_net(each)}/mtu") for each in _there(n)}
    wrong = [f"{name} has {value}" for name, value in seen.items() if value != planned]
    return none_wrong(wrong, str(planned), f"all have {planned}", "/sys/class/net/*/mtu")


@check(
    "FABRIC.SPEED",
    "Every cable runs at 200 Gbit/s: one that trained down halves all collectives and says nothing.",
    "warning",
    "issues, owen",
    fix="reseat the cable at both ends; sudo ethtool shows what each end offers",
    on="spark",
)
def speed(n: Node) -> Verdict:
    seen = {str(each["interface"]): n.value(f"{_net(each)}/speed") for each in _there(n)}
    wrong = [f"{name} at {value} Mbit/s" for name, value in seen.items() if value < 200000]
    return none_wrong(wrong, "200000", "all at 200000", "/sys/class/net/*/speed")


@check(
    "FABRIC.PCIE",
    "Every function of the network card has PCIe Gen5 with four lanes: together they carry one cable.",
    "warning",
    "issues, owen",
    fix="stop the group, pull AC power and the cables of this node and its peers for a minute",
    on="spark",
)
def pcie(n: Node) -> Verdict:
    wrong = []
    for each in _there(n):
        rate = n.text(f"{_net(each)}/device/current_link_speed").strip()
        lanes = n.value(f"{_net(each)}/device/current_link_width")
        if not rate.startswith("32.0 GT/s") or lanes < 4:
            wrong.append(f"{each['interface']} has {rate} x{lanes}")
    return none_wrong(wrong, "32.0 GT/s x4", "all have it", "/sys/class/net/*/device/current_link_*")


@check(
    "FABRIC.FLAPS",
    "No cable has lost its carrier often since boot: 1300 flaps were a bad cable that RDMA still "
    "called ACTIVE.",
    "warning",
    "knapcio",
    fix="reseat the cable at both ends, then replace it; the count begins again at a reboot",
    on="spark",
)
def flaps(n: Node) -> Verdict:
    seen = {str(each["interface"]): n.value(f"{_net(each)}/carrier_changes") for each in _there(n)}
    wrong = [f"{name} {value} times" for name, value in seen.items() if value > 50]
    return none_wrong(wrong, "at most 50 changes", "few", "/sys/class/net/*/carrier_changes")


@check(
    "FABRIC.STRIPES",
    "Every cable has both of its port's functions in the plan: with one only, half of its speed is used.",
    "error",
    "issues, knapcio",
    fix="run ./sparkserve fleet plan: each cable needs stripes 0 and 1 (enp1s0* and enP2p1s0*)",
    on="spark",
)
def stripes(n: Node) -> Verdict:
    ports: dict[object, set[object]] = {}
    for each in n.links():
        ports.setdefault(each.get("port"), set()).add(each.get("stripe"))
    wrong = [f"port {port} has {len(found)}" for port, found in ports.items() if len(found) < 2]
    return none_wrong(wrong, "two stripes", "all have two", "the plan's fabric.links")


@check(
    "FABRIC.IPV6",
    "Interfaces of cables have no IPv6 address: each one takes a place in the GID table, and indices move.",
    "warning",
    "owen, issues",
    fix="link-local: [] for these interfaces in /etc/netplan, then " + APPLY,
    on="spark",
)
def ipv6(n: Node) -> Verdict:
    ours = {str(each["interface"]) for each in n.links()}
    wrong = [f"{name} has {found}" for name, found, _ in n.addresses("inet6") if name in ours]
    return none_wrong(wrong, "no IPv6", "none", "ip addr show")


@check(
    "FABRIC.MANAGEMENT",
    "The management interface has the plan's address: ssh, the group's control and gloo use it.",
    "error",
    "owen, issues",
    fix="ip addr show; put the address on the interface in /etc/netplan, or correct fleet.nodes in fleet.nix",
)
def management(n: Node) -> Verdict:
    planned = n.plan("fabric", "management")
    name, wanted = str(planned["interface"]), str(planned["address"])
    found = [f"{a} on {i}" for i, a, _ in n.addresses() if a == wanted or i == name]
    good = f"{wanted} on {name}" in found
    return want(
        good, expected=f"{wanted} on {name}", found=", ".join(found) or "neither", where="ip addr show"
    )


@check(
    "FABRIC.SUBNET",
    "No other interface has an address in the subnet of a cable: packets would leave by the wrong one.",
    "error",
    "owen",
    fix="ip addr show; give the other interface (often Wi-Fi or a bridge of docker) another network",
)
def subnet(n: Node) -> Verdict:
    nets = [
        (str(each["interface"]), ipaddress.ip_network(f"{each['address']}/{each['prefix']}", strict=False))
        for each in n.links()
    ]
    wrong = [
        f"{name} has {found} in {net} of {ours}"
        for name, found, _ in n.addresses()
        for ours, net in nets
        if name not in [interface for interface, _ in nets] and ipaddress.ip_address(found) in net
    ]
    return none_wrong(wrong, "each subnet on one interface", "none twice", "ip addr show")


@check(
    "FABRIC.PERSISTENT",
    "The addresses of cables are in /etc: what NetworkManager keeps in /run is gone after a reboot.",
    "warning",
    "issues",
    fix="write them into /etc/netplan/40-cx7.yaml (./sparkserve fleet plan shows them), then " + APPLY,
    on="spark",
)
def persistent(n: Node) -> Verdict:
    written = ""
    for folder, ending in (("/etc/netplan", ".yaml"), ("/etc/systemd/network", ".network")):
        if n.exists(folder):
            written += "".join(
                n.text(f"{folder}/{name}") for name in n.names(folder) if name.endswith(ending)
            )
    wrong = [
        f"{each['interface']}: {each['address']}"
        for each in n.links()
        if not re.search(rf"(?<![\d.]){re.escape(str(each['address']))}/", written)
    ]
    return none_wrong(wrong, "every address", "all are", "/etc/netplan, /etc/systemd/network")


@check(
    "FABRIC.OWNER",
    "No interface of a cable has a connection of NetworkManager's own: netplan's count after a reboot.",
    "warning",
    "issues",
    fix="sudo nmcli connection delete the one that is named; then " + APPLY,
    on="spark",
)
def owner(n: Node) -> Verdict:
    if not n.exists("/run/NetworkManager"):
        raise NotApplicable("NetworkManager does not run")
    rows = re.findall(
        r"^([^:\n]+):(?:(?:un|dis)?connected|connecting|unmanaged|unavailable|deactivating)\b[^:\n]*:(.*)$",
        n.run("nmcli", "-t", "-f", "DEVICE,STATE,CONNECTION", "device"),
        re.M,
    )
    if not rows:
        raise Unknown("nmcli printed no devices")
    cabled = {str(each["interface"]) for each in n.links()}
    # Netplan names what it makes: netplan-enp1s0f0np0.
    own = {name: made for name, made in rows if name in cabled and made and not made.startswith("netplan-")}
    wrong = [f"{name} has {made}" for name, made in own.items()]
    fix = f"sudo nmcli connection delete {' '.join(map(shlex.quote, own.values()))}; then {APPLY}"
    return none_wrong(wrong, "none but netplan's", "none but netplan's", "nmcli device", fix)


@check(
    "FABRIC.ROUTE",
    "Packets to a peer's cable address leave by that cable.",
    "error",
    "owen, issues",
    fix="ip route; remove the route that is more exact than the cable's subnet, or the second "
    "interface in it",
)
def route(n: Node) -> Verdict:
    wrong = []
    for interface, peer in n.peers():
        found = n.json("ip", "-j", "route", "get", peer)
        by = found[0].get("dev") if found else None
        if by != interface:
            wrong.append(f"to {peer} by {by} and not {interface}")
    return none_wrong(wrong, "the cable's own interface", "all do", "ip route get")


@check(
    "FABRIC.NEIGHBOUR",
    "No peer's cable address has a failed ARP entry: RoCE does not wait for one (RETRY_EXC_ERR at "
    "first use).",
    "warning",
    "issues",
    fix="ping the address once from this node; if that fails, look at the peer's link, address and firewall",
)
def neighbour(n: Node) -> Verdict:
    peers = {peer: interface for interface, peer in n.peers()}
    # iproute2 6.1 leaves out `dev` in some listings: the address alone is enough, as subnets are not shared.
    wrong = [
        f"{entry['dst']} is {' '.join(entry['state'])}"
        for entry in n.json("ip", "-j", "neigh", "show")
        if entry.get("dst") in peers
        and entry.get("dev", peers[entry["dst"]]) == peers[entry["dst"]]
        and {"FAILED", "INCOMPLETE"} & set(entry.get("state", []))
    ]
    return none_wrong(wrong, "no FAILED entry", "none failed", "ip neigh show")


@check(
    "FABRIC.PING",
    "Every peer answers a whole packet of the plan's MTU over every stripe.",
    "error",
    "owen, issues",
    fix="compare MTU and address of both ends (sparkserve doctor there too); a part of the answers "
    "is a bad cable",
    live=True,
)
def ping(n: Node) -> Verdict:
    size = str(int(n.plan("fabric", "mtu")) - 28)  # an IPv4 and an ICMP header
    wrong = []
    for interface, peer in n.peers():
        words = ("ping", "-n", "-q", "-c", "1", "-W", "2", "-M", "do", "-s", size, "-I")
        code, out = n.answer(*words, interface, peer)
        if code == 0 and "received" not in out:
            raise Unknown("ping printed another form")
        if code != 0:
            last = [line for line in out.splitlines() if line.strip()]
            wrong.append(f"{peer} by {interface}: {last[-1][:60] if last else code}")
    return none_wrong(wrong, f"an answer to {size} bytes", "all answer", "ping -M do")
