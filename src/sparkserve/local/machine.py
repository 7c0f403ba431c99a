"""Can this machine carry a laptop fleet? Asked before anything is made."""

from __future__ import annotations

import json
import os
import re
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve.errors import SparkserveError
from sparkserve.local import network

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.local.names import Names
    from sparkserve.local.tools import Tools
    from sparkserve.plan import Plan


# No names for nodes: links in the fleet's folder, and the namespace of its cables.
TAKEN = ("root", "tools", "wires")
_CAPABILITIES = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}  # with their numbers in the kernel


def check() -> None:
    """Raise `HOST.ROOT` or `HOST.SYSTEM` unless root, loop devices, overlays and namespaces are there."""
    if os.geteuid() != 0:
        raise SparkserveError(
            "HOST.ROOT",
            expected="root: nodes are made of namespaces and mounts",
            found=f"user {os.geteuid()}",
            where="this shell",
            do="Run the same command with sudo.",
        )
    able = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    for number, name in _CAPABILITIES.items():
        if able and not int(able[1], 16) >> number & 1:
            raise _lacks(f"the capability {name}", "a container without it")
    known = Path("/proc/filesystems").read_text().split()
    for name in ("ext4", "overlay"):
        if name not in known:
            _load(name)
    if not Path("/dev/loop-control").exists():
        _load("loop")
    for name in ("net", "pid", "mnt", "uts", "ipc", "cgroup", "time"):
        if not Path("/proc/self/ns", name).exists():
            raise _lacks(f"{name} namespaces", "a kernel without them")


def check_network(names: Names, plans: Sequence[Plan], tools: Tools) -> None:
    """Raise `HOST.NETWORK` unless the management network is free on this machine."""
    _, wanted = network.switch_address(plans)
    addresses = json.loads(tools.run(["ip", "-json", "-4", "address", "show"]))
    routes = json.loads(tools.run(["ip", "-json", "-4", "route", "show", "table", "all"]))
    taken = user_of(wanted, addresses, routes, names.interface)
    if taken is not None:
        raise SparkserveError(
            "HOST.NETWORK",
            expected=f"the management network {wanted} to be free on this machine",
            found=taken,
            where=f"hosts/{names.fleet}/fleet.nix",
            do="Give the nodes addresses of another network there (fleet.nodes, address).",
        )


def user_of(
    wanted: IPv4Network, addresses: Sequence[dict[str, Any]], routes: Sequence[dict[str, Any]], own: str
) -> str | None:
    """What uses a part of the network `wanted`, from what `ip -json` shows; the interface `own` does not
    count.

    A wider route through a gateway is no use of it: ours is more exact and hides a part of it, as for any
    network that a machine is in.
    """
    for interface in addresses:
        for address in interface["addr_info"]:
            there = IPv4Network((address["local"], address["prefixlen"]), strict=False)
            if interface["ifname"] != own and there.overlaps(wanted):
                return f"{address['local']}/{address['prefixlen']} on {interface['ifname']}"
    for route in routes:
        if route["dst"] == "default" or route.get("dev") == own or route.get("table") == "local":
            continue
        there = IPv4Network(route["dst"])
        if there.overlaps(wanted) and (there.prefixlen >= wanted.prefixlen or "gateway" not in route):
            return f"a route to {route['dst']} through {route.get('dev', 'no interface')}"
    return None


def check_plans(plans: Sequence[Plan]) -> None:
    """Raise `FLEET.ASSERTION` unless all management addresses are in one network: one switch joins them.

    Also for a node whose name is that of something else in the fleet's folder, or among its namespaces.
    """
    _, wanted = network.switch_address(plans)
    for plan in plans:
        if plan.node.name in TAKEN:
            raise SparkserveError(
                "FLEET.ASSERTION",
                expected=f"nodes of a laptop fleet with other names than {', '.join(TAKEN)}",
                found=plan.node.name,
                where=f"hosts/{plan.fleet.name}/fleet.nix",
                do="Rename it: these are names of the laptop fleet's own files and namespaces.",
            )
        address: IPv4Address = network.fabric(plan).management.address
        if address not in wanted:
            raise SparkserveError(
                "FLEET.ASSERTION",
                expected=f"all nodes of a laptop fleet in one management network, {wanted}",
                found=f"{plan.node.name} with {address}",
                where=f"hosts/{plan.fleet.name}/fleet.nix",
                do="Change its address, or fabric.managementPrefix.",
            )


def _load(module: str) -> None:
    """Load a kernel module that this machine may have. Raises `HOST.SYSTEM`."""
    import subprocess

    try:
        done = subprocess.run(["modprobe", module], capture_output=True, text=True)
        problem = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        raise _lacks(
            {"loop": "loop devices (/dev/loop-control)"}.get(module, f"the filesystem {module}"), problem
        )


def _lacks(what: str, found: str) -> SparkserveError:
    return SparkserveError(
        "HOST.SYSTEM",
        expected=f"{what}, which every node needs",
        found=found,
        where="this machine's kernel",
        do="Use another kernel, or run it outside of this container; ./sparkserve up --fleet local-single "
        "needs none of it.",
    )
