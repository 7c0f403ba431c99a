"""What RDMA makes of the cables: devices, ports, GIDs, and what the card counts."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, none_wrong, quoted, want

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.doctor.node import Node

ROOT = "/sys/class/infiniband"


def _hcas(n: Node) -> list[tuple[str, dict[str, object]]]:
    """(HCA, link) of every planned link whose interface has an RDMA device."""
    found = []
    for link in n.links():
        folder = f"/sys/class/net/{link['interface']}/device/infiniband"
        if n.exists(folder) and (names := n.names(folder)):
            found.append((names[0], link))
    if not found:
        raise NotApplicable("no interface of the plan has an RDMA device: see RDMA.DEVICES")
    return found


def _gids(n: Node, hca: str) -> Iterator[tuple[int, str]]:
    """(index, IPv4 address) of every RoCE v2 GID of a port."""
    port = f"{ROOT}/{hca}/ports/1"
    for index in sorted(int(name) for name in n.names(f"{port}/gids") if name.isdigit()):
        gid = n.text(f"{port}/gids/{index}").strip()
        if not re.fullmatch(r"[0-9a-f]{4}(:[0-9a-f]{4}){7}", gid):
            raise Unknown(f"{port}/gids/{index} is no GID")
        # An empty place of the table has no type, and reading it is an error.
        mapped = ipaddress.IPv6Address(gid).ipv4_mapped
        if mapped is None:
            continue
        kind = n.text(f"{port}/gid_attrs/types/{index}").strip()
        if kind not in ("IB/RoCE v1", "RoCE v2"):
            raise Unknown(f"{port}/gid_attrs/types/{index} is no type of GID")
        if kind == "RoCE v2":
            yield index, str(mapped)


@check(
    "RDMA.DEVICES",
    "Every interface of a cable has an RDMA device.",
    "error",
    "owen, issues",
    fix="sudo modprobe mlx5_ib; if none appears: rdma-core and the kernel's modules are of different "
    "versions",
    on="spark",
)
def devices(n: Node) -> Verdict:
    links = n.links()
    with_one = [str(link["interface"]) for link in links if _has(n, link)]
    wrong = [str(link["interface"]) for link in links if str(link["interface"]) not in with_one]
    return none_wrong(wrong, "a device for each", "all have one", "/sys/class/net/*/device/infiniband")


def _has(n: Node, link: dict[str, object]) -> bool:
    folder = f"/sys/class/net/{link['interface']}/device/infiniband"
    return n.exists(folder) and bool(n.names(folder))


@check(
    "RDMA.NAMES",
    "Every interface of a cable has the RDMA device that the plan gives to NCCL: names differ by firmware.",
    "error",
    "issues",
    fix="sudo rdma link show; correct fleet.nodes in fleet.nix, or look which udev rule renames devices",
    on="spark",
)
def names(n: Node) -> Verdict:
    wrong = [
        f"{link['interface']} has {hca} and not {link['hca']}"
        for hca, link in _hcas(n)
        if hca != link.get("hca", hca)
    ]
    return none_wrong(wrong, "the plan's names", "all have them", "/sys/class/net/*/device/infiniband")


@check(
    "RDMA.NODES",
    "Every RDMA device has its node in /dev/infiniband: without them NCCL falls back to sockets and "
    "says nothing.",
    "error",
    "issues, mia",
    fix="sudo modprobe ib_uverbs rdma_ucm",
    on="spark",
)
def nodes(n: Node) -> Verdict:
    there = n.names("/dev/infiniband") if n.exists("/dev/infiniband") else []
    count = sum(name.startswith("uverbs") for name in there)
    needed = len(_hcas(n))
    return want(
        count >= needed, expected=f"at least {needed} uverbs nodes", found=count, where="/dev/infiniband"
    )


@check(
    "RDMA.ACTIVE",
    "Every RDMA port of a cable is ACTIVE.",
    "error",
    "mia",
    fix="FABRIC.LINK first; then sudo rdma link show, and reseat the cable",
    on="spark",
)
def active(n: Node) -> Verdict:
    seen = {hca: n.text(f"{ROOT}/{hca}/ports/1/state").strip() for hca, _ in _hcas(n)}
    wrong = [f"{hca} is {state}" for hca, state in seen.items() if state != "4: ACTIVE"]
    return none_wrong(wrong, "4: ACTIVE", "all are ACTIVE", f"{ROOT}/*/ports/1/state")


@check(
    "RDMA.GID",
    "Every HCA of a cable has a RoCE v2 GID that is an IPv4 address, at whichever index.",
    "error",
    "issues, mia, owen",
    fix="sudo ip link set INTERFACE down, then up and sudo netplan apply, while nothing uses RDMA",
    on="spark",
)
def gid(n: Node) -> Verdict:
    without = [(hca, link["interface"]) for hca, link in _hcas(n) if not list(_gids(n, hca))]
    wrong = [f"{hca} ({interface}) has none" for hca, interface in without]
    fix = (
        f"./sparkserve down; for i in {quoted(*(interface for _, interface in without))}; "
        'do sudo ip link set "$i" down; sudo ip link set "$i" up; done; sudo netplan apply'
    )
    return none_wrong(wrong, "one for each HCA", "all have one", f"{ROOT}/*/ports/1/gids", fix)


@check(
    "RDMA.GID_ADDRESS",
    "The IPv4 GID of every HCA is the plan's address of its interface: an old one stays after a "
    "readdressing.",
    "error",
    "owen",
    fix="sudo ip addr show INTERFACE; remove the old address, then sudo netplan apply while nothing "
    "uses RDMA",
    on="spark",
)
def gid_address(n: Node) -> Verdict:
    wrong, fix = [], ["./sparkserve down"]
    for hca, link in _hcas(n):
        found = [address for _, address in _gids(n, hca)]
        if found and str(link["address"]) not in found:
            wrong.append(f"{hca} has {' '.join(found)} and not {link['address']}")
            old = [(f"{address}/{link['prefix']}", "dev", link["interface"]) for address in found]
            fix += [f"sudo ip addr del {quoted(*words)}" for words in old]
    fix.append("sudo netplan apply")
    where = f"{ROOT}/*/ports/1/gids"
    return none_wrong(wrong, "the plan's addresses", "all have them", where, "; ".join(fix))


@check(
    "RDMA.GID_PINNED",
    "An NCCL_IB_GID_INDEX in the engine's environment is right for every HCA: indices differ, and move.",
    "error",
    "issues, owen",
    fix="take NCCL_IB_GID_INDEX out of engine.env in fleet.nix: NCCL then finds the index of each HCA",
    on="spark",
)
def gid_pinned(n: Node) -> Verdict:
    pinned = n.environment().get("NCCL_IB_GID_INDEX")
    if not pinned:
        return want(True, expected="", found="not pinned", where="the plan's engine.env")
    wrong = []
    for hca, _ in _hcas(n):
        found = [str(index) for index, _ in _gids(n, hca)]
        if found and pinned not in found:
            wrong.append(f"{hca} has its IPv4 GID at {' '.join(found)} and not {pinned}")
    return none_wrong(wrong, "no pin, or a right one", f"{pinned} is right now", f"{ROOT}/*/ports/1/gids")


@check(
    "RDMA.MTU",
    "Every RDMA port has an active MTU of 4096: with 1024 prefill is slow.",
    "warning",
    "mia",
    fix="FABRIC.MTU first: RDMA takes the largest of 1024, 2048, 4096 that fits the interface",
    on="spark",
)
def active_mtu(n: Node) -> Verdict:
    out = n.run("ibv_devinfo")
    blocks = re.findall(r"hca_id:\s*(\S+)(.*?)(?=hca_id:|\Z)", out, re.S)
    seen = {hca: re.search(r"active_mtu:\s*(\d+)", block) for hca, block in blocks}
    wrong = []
    for hca, _ in _hcas(n):
        if (found := seen.get(hca)) is None:
            raise Unknown(f"ibv_devinfo shows no active_mtu of {hca}")
        if int(found[1]) < 4096:
            wrong.append(f"{hca} has {found[1]}")
    return none_wrong(wrong, "4096", "all have 4096", "ibv_devinfo")


@check(
    "RDMA.LOSS",
    "The card counts few lost or late packets: loss without flow control is how an all-reduce hangs "
    "for ever.",
    "warning",
    "issues",
    fix="compare FABRIC.MTU on both ends, replace the cable; behind a switch set PFC and ECN for RoCE",
    on="spark",
)
def loss(n: Node) -> Verdict:
    up = re.match(r"(\d+)\.", n.text("/proc/uptime"))
    if not up:
        raise Unknown("/proc/uptime has another form")
    hours = max(int(up[1]) / 3600, 1.0)
    wrong = []
    for hca, _ in _hcas(n):
        for name in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err"):
            count = n.value(f"{ROOT}/{hca}/ports/1/hw_counters/{name}")
            # One report had 50,000 an hour; a boot and a pulled cable leave a handful.
            if count / hours > 100:
                wrong.append(f"{hca} {name} {count} in {hours:.0f} h")
    return none_wrong(wrong, "at most 100 an hour", "few", f"{ROOT}/*/ports/1/hw_counters")


@check(
    "RDMA.FIRMWARE",
    "All functions of the network card run one firmware, 28.45.4028 or later.",
    "warning",
    "owen, issues",
    fix="sudo fwupdmgr get-updates, and update all nodes; then look at MTU and addresses again",
    on="spark",
)
def firmware(n: Node) -> Verdict:
    seen = {n.text(f"{ROOT}/{hca}/fw_ver").strip() for hca, _ in _hcas(n)}
    if not all(re.fullmatch(r"\d+\.\d+\.\d+", each) for each in seen):
        raise Unknown(f"fw_ver has another form: {' '.join(sorted(seen))[:60]}")
    late = all(tuple(map(int, each.split("."))) >= (28, 45, 4028) for each in seen)
    found = " ".join(sorted(seen))
    return want(
        len(seen) == 1 and late,
        expected="one version, from 28.45.4028",
        found=found,
        where=f"{ROOT}/*/fw_ver",
    )


@check(
    "RDMA.HAIRPIN",
    "In a ring whose cards forward, the hairpin queue is 8192: with 1024 messages above 80 KB collapse.",
    "warning",
    "issues, knapcio",
    fix="sudo devlink dev param set pci/ADDRESS name hairpin_queue_size value 8192 cmode driverinit && "
    "sudo devlink dev reload pci/ADDRESS, at each boot",
    on="spark",
)
def hairpin(n: Node) -> Verdict:
    names = [each.get("name") for each in n.plan("adapters")]
    if n.plan("fleet", "topology") != "ring" or "oneshot-collectives" not in names:
        raise NotApplicable("only one-shot collectives in a ring make the cards forward")
    wrong: list[str] = []
    fix: list[str] = []
    for hca, link in _hcas(n):
        pci = str(link["pci"])
        code, out = n.answer(
            "devlink", "-j", "dev", "param", "show", f"pci/{pci}", "name", "hairpin_queue_size"
        )
        found = re.search(r'"value":\s*(\d+)', out)
        if code != 0 or not found:
            raise Unknown(f"devlink does not know hairpin_queue_size of {pci}")
        if int(found[1]) < 8192:
            wrong.append(f"{hca} has {found[1]}")
            card = quoted(f"pci/{pci}")
            fix += [
                f"sudo devlink dev param set {card} name hairpin_queue_size value 8192 cmode driverinit",
                f"sudo devlink dev reload {card}",
            ]
    return none_wrong(wrong, "8192", "all have 8192", "devlink dev param", " && ".join(fix))
