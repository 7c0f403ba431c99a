"""What a rank checks on its own node before a boot."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.adapters.plugin import VARIABLE
from sparkserve.fabric import check as cables
from sparkserve.fabric import host
from sparkserve.group import echo
from sparkserve.group.launch import LOOPBACK, parts

if TYPE_CHECKING:
    from sparkserve.engine.closure import Closure
    from sparkserve.group.protocol import Preflight
    from sparkserve.plan import Plan

# The logs of a start take a few hundred kilobytes; a full disk fails later and says less.
FREE_BYTES = 64 << 20


async def check(plan: Plan, closure: Closure, order: Preflight, logs: Path) -> list[str]:
    """What stands against a boot on this rank, a sentence each. Takes `order.seconds` at most."""
    fabric, group = parts(plan)
    problems = [f"an engine of an earlier boot is alive: process {pid}" for pid in old_engines()]
    ports = [(LOOPBACK, group.engine_port)]
    if plan.node.rank == 0:
        ports.append((str(fabric.management.address), order.port))
    problems += [f"port {port} of {host} is taken" for host, port in ports if not _free(host, port)]
    problems += [
        f"the layer {layer.name} is not there: {layer.path}"
        for layer in closure.root.layers
        if not Path(layer.path).is_dir()
    ]
    disk = os.statvfs(logs)
    free = disk.f_bavail * disk.f_frsize
    if free < FREE_BYTES:
        problems.append(f"the disk is full: {free >> 20} MiB free in {logs}, {FREE_BYTES >> 20} MiB needed")
    problems += [
        f"{each.where}: expected {each.expected}, found {each.found}"
        for each in cables.rdma(plan, host.read())
    ]
    # Also with problems: else every peer would have one too.
    return problems + await echo.probe(fabric.links, group.control_port + 1, order.token, order.seconds)


def old_engines() -> list[int]:
    """Processes that hold an engine of a group: bubblewrap is there as long as anything in its root is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"\0{VARIABLE}\0".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def _free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        # As servers do: a connection of the boot before that the kernel still remembers is no hindrance.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
        except OSError:
            return False
        return True
