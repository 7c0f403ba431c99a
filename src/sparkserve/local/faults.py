"""What happens to nodes and cables, as calls: power, cut and bad cables, full disks, standstill.

Nodes are given by name. A call returns when it has happened. A power cycle of either end plugs a bad cable in
anew: `degrade_link` is over then, a cut is not.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.local import network, power, wiring
from sparkserve.local.lock import powered

if TYPE_CHECKING:
    from sparkserve.local.network import Wire
    from sparkserve.local.record import Fleet

_FILLER = "var/filler"
_MIB = 1 << 20


class Counter(NamedTuple):
    """Bytes that came in and went out of an interface since the node's power came on."""

    received: int
    sent: int


def power_on(fleet: Fleet, node: str) -> None:
    """Power a node on and wait until it answers. Raises `HOST.SYSTEM`."""
    with powered(fleet.names):
        power.on(fleet, node)
    power.wait(fleet, node)


def power_off(fleet: Fleet, node: str) -> None:
    """Shut a node down in order, at most 20 s, then switch it off."""
    with powered(fleet.names):
        power.off(fleet, node)


def power_cycle(fleet: Fleet, node: str) -> None:
    """Switch a node off, without a shutdown but with all that it wrote on its disk, and on again."""
    with powered(fleet.names):
        power.stop(fleet, node, clean_s=0.0)
        power.on(fleet, node)
    power.wait(fleet, node)


def power_cut(fleet: Fleet, node: str) -> None:
    """Take a node's power: what it had not synced to its disk is lost. It stays off."""
    with powered(fleet.names):
        power.cut(fleet, node)


def cut_link(fleet: Fleet, one: str, other: str, stripe: int | None = None) -> None:
    """Pull the cable between two nodes, or one stripe: no carrier at both ends, also after a power cycle."""
    _set_bridges(fleet, wires_between(fleet, one, other, stripe), "down")


def restore_link(fleet: Fleet, one: str, other: str, stripe: int | None = None) -> None:
    """Plug in a good cable in place of a cut or bad one."""
    wires = wires_between(fleet, one, other, stripe)
    for port in (wire.port(rank) for wire in wires for rank in wire.ends):
        # Where nothing is bad there is nothing to delete.
        fleet.tools.attempt(network.without_rate(fleet.names, port))
        fleet.tools.attempt(network.in_wires(fleet.names, "nft", "delete", "table", "netdev", port))
    _set_bridges(fleet, wires, "up")


def degrade_link(
    fleet: Fleet,
    one: str,
    other: str,
    stripe: int | None = None,
    *,
    loss_percent: int = 0,
    mbit: int | None = None,
) -> None:
    """Make a cable bad in both directions: it loses that share of packets, and passes so many Mbit/s.

    Raises `HOST.SYSTEM` where the kernel has no nftables (loss) or no token buckets (rate).
    """
    for wire in wires_between(fleet, one, other, stripe):
        for rank in wire.ends:
            if mbit is not None:
                fleet.tools.run(network.with_rate(fleet.names, wire.port(rank), mbit))
            if loss_percent:
                rules = network.loss(wire.port(rank), loss_percent)
                fleet.tools.run(network.in_wires(fleet.names, "nft", "-f", "-"), text=rules)


def cut_management(fleet: Fleet, node: str) -> None:
    """Pull a node's management cable. A power cycle plugs it in again."""
    port = network.port(fleet.plan(node).node.rank)
    wiring.batch(fleet.tools, [f"link set {port} down"], netns=fleet.names.wires)


def restore_management(fleet: Fleet, node: str) -> None:
    """Plug a node's management cable in."""
    port = network.port(fleet.plan(node).node.rank)
    wiring.batch(fleet.tools, [f"link set {port} up"], netns=fleet.names.wires)


def fill_disk(fleet: Fleet, node: str, *, leave_mib: int = 0) -> None:
    """Fill a node's disk until `leave_mib` are free."""
    path = _inside(fleet, node, _FILLER)
    with path.open("wb") as file:
        space = os.statvfs(path)
        size = max(0, space.f_bavail * space.f_frsize - leave_mib * _MIB)
        while size > 0:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
                return
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size -= _MIB  # the filesystem takes some for its own lists


def free_disk(fleet: Fleet, node: str) -> None:
    """Undo `fill_disk`."""
    _inside(fleet, node, _FILLER).unlink(missing_ok=True)


def freeze(fleet: Fleet, node: str) -> None:
    """Stop every process of a node at one moment; its cables stay up and its kernel still answers pings."""
    fleet.cgroups.freeze(fleet.names.group, node, frozen=True)


def thaw(fleet: Fleet, node: str) -> None:
    """Let a frozen node go on."""
    fleet.cgroups.freeze(fleet.names.group, node, frozen=False)


def counters(fleet: Fleet, node: str) -> dict[str, Counter]:
    """The bytes over each of a node's interfaces."""
    found = {}
    for line in Path(f"/proc/{_init(fleet, node)}/net/dev").read_text().splitlines()[2:]:
        interface, _, numbers = line.partition(":")
        fields = numbers.split()
        found[interface.strip()] = Counter(int(fields[0]), int(fields[8]))
    return found


def boot_id(fleet: Fleet, node: str) -> str | None:
    """The id of a node's boot, another one after each; None while it is off."""
    process = power.init(fleet, node)
    if process is not None:
        with suppress(OSError):
            return Path(f"/proc/{process.pid}/root/run/host/boot_id").read_text().strip()
    return None


def wires_between(fleet: Fleet, one: str, other: str, stripe: int | None = None) -> list[Wire]:
    """The stripes of the cable between two nodes. Raises `FLEET.NAME` when there is none."""
    ranks = {fleet.plan(one).node.rank, fleet.plan(other).node.rank}
    wires = [wire for wire in network.wires(fleet.plans) if set(wire.ends) == ranks]
    chosen = [wire for wire in wires if stripe is None or wire.stripe == stripe]
    if not chosen:
        raise SparkserveError(
            "FLEET.NAME",
            expected=f"a cable between {one} and {other}"
            + ("" if stripe is None else f" with stripe {stripe}"),
            found=f"the stripes {', '.join(str(wire.stripe) for wire in wires) or 'none'}",
            where=fleet.name,
            do="Name two nodes with a cable between them.",
        )
    return chosen


def _set_bridges(fleet: Fleet, wires: list[Wire], state: str) -> None:
    with powered(fleet.names):
        lines = [f"link set {wire.bridge} {state}" for wire in wires]
        wiring.batch(fleet.tools, lines, netns=fleet.names.wires)
        wiring.settle(fleet)


def _inside(fleet: Fleet, node: str, path: str) -> Path:
    return Path(f"/proc/{_init(fleet, node)}/root", path)


def _init(fleet: Fleet, node: str) -> int:
    """The pid of a node's PID 1. Raises `ENGINE.STATE` when it is off."""
    process = power.init(fleet, node)
    if process is None:
        raise SparkserveError(
            "ENGINE.STATE",
            expected=f"{node} to be on",
            found="it is off",
            where=fleet.name,
            do="Power it on first.",
        )
    return process.pid
