"""A fleet of several nodes on this machine: `power_on` makes it, `down` leaves nothing of it, `status` looks.

    fleet = triangle.power_on(plans.load("local-triangle"))
    subprocess.run(["ssh", "-F", fleet.ssh_config, "spark-1", "uptime"], env=fleet.environment)
    triangle.down("local-triangle")

What happens to single nodes and cables is in `faults`. Disks stay over `down`, so that the next start copies
nothing again; `down(..., disks=True)` removes them too.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import checkout, nix
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.fleet.names import check as check_name
from sparkserve.interrupts import uninterrupted
from sparkserve.local import cgroups, keeper, keys, leftovers, machine, network, power, record, wiring
from sparkserve.local import names as naming
from sparkserve.local.boot import DEFAULT_SIZES, Sizes
from sparkserve.local.lock import powered
from sparkserve.local.record import Fleet
from sparkserve.local.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparkserve.local.names import Names
    from sparkserve.plan import Plan

_CLEAN_S = 5.0


class NodeStatus(NamedTuple):
    """A node: wanted on, has a PID 1, its ssh port answers."""

    node: str
    wanted: bool
    on: bool
    answers: bool


class Status(NamedTuple):
    """A laptop fleet; `keeper` says whether its keeper runs."""

    keeper: bool
    nodes: tuple[NodeStatus, ...]


def names(fleet: str) -> Names:
    """The names of a fleet of this checkout. Raises `FLEET.NAME` for what can be no name."""
    check_name(fleet)
    # Not Path.resolve, which raises what nobody expects for links in a circle.
    return naming.Names(fleet, Path(os.path.realpath(checkout.state() / "local" / fleet)))


def check(plans: Sequence[Plan]) -> None:
    """Can this machine carry the fleet, and is its port free? Raises `HOST.*`, `FLEET.ASSERTION`.

    `power_on` asks too; ask before a long build.
    """
    from sparkserve.local import port

    machine.check()
    machine.check_plans(plans)
    if keeper.find(names(plans[0].fleet.name)) is None:
        port.check(plans[0].serving.host, plans[0].serving.port)


def power_on(plans: Sequence[Plan], sizes: Sizes = DEFAULT_SIZES) -> Fleet:
    """Bring all nodes of a fleet up and wait until they answer over ssh; those that run as planned stay.

    A fleet whose base root, sizes or network changed is powered off first. When it was down before and
    something fails or is interrupted, nothing of it is left. Raises `HOST.*`, `FLEET.ASSERTION`, `NIX.BUILD`.
    """
    check(plans)
    groups = cgroups.detect()
    mine = names(plans[0].fleet.name)
    mine.folder.mkdir(parents=True, exist_ok=True)
    root, tools = _image(mine)
    fleet = Fleet(mine, tuple(plans), root, tools, sizes, groups)
    fresh = False
    try:
        with powered(mine):
            fresh = not _stays(fleet)
            if fresh:
                keeper.stop(mine)
                leftovers.remove(mine, tools, clean_s=_CLEAN_S)
                machine.check_network(mine, plans, tools)
            _make(fleet)
        keeper.start(fleet)
        _each(fleet, lambda node: power.wait(fleet, node))
    except BaseException:
        if fresh:
            with uninterrupted():
                _remove(mine, tools, clean_s=0.0)
        raise
    return fleet


def load(fleet: str) -> Fleet:
    """The fleet that is up. Raises `ENGINE.STATE` when it is down."""
    found = record.load(names(fleet))
    if found is None:
        raise SparkserveError(
            "ENGINE.STATE",
            expected=f"the laptop fleet {fleet} to be up",
            found="no nodes",
            where=str(names(fleet).record),
            do=f"Run {command('up', fleet)}.",
        )
    return found


def adopt(fleet: Fleet, plans: Sequence[Plan], *, dry: bool = False) -> None:
    """Remember that the nodes run by `plans` now, not by those they were powered on for.

    Raises `FLEET.OPTION`, with `dry` only that, when these are of other nodes, cables, addresses or ports.
    """
    other = replace(fleet, plans=tuple(plans))
    if _parts(other) != _parts(fleet):
        raise SparkserveError(
            "FLEET.OPTION",
            expected="nodes, cables, addresses and port as they were when the nodes were powered on",
            found="others, which a node cannot change while it runs",
            where=fleet.name,
            do=f"Power them off and on: {command('up', fleet.name)}.",
        )
    if not dry:
        record.save(other)


def exists(fleet: str) -> bool:
    """Whether anything of the fleet is on this machine besides its folder."""
    mine = names(fleet)
    return mine.folder.exists() and bool(leftovers.find(mine))


def down(fleet: str, *, disks: bool = False) -> bool:
    """End a fleet, whatever state it is in; False when there was nothing. With `disks` its nodes forget all.

    Raises `HOST.SYSTEM` when something stays.
    """
    mine = names(fleet)
    there = exists(fleet)
    if there:
        _remove(mine, _tools(mine), clean_s=_CLEAN_S)
    if disks:
        shutil.rmtree(mine.folder, ignore_errors=True)
    return there


def status(fleet: str) -> Status:
    """How the nodes of a fleet are; none when it is down."""
    found = record.load(names(fleet))
    if found is None:
        return Status(False, ())
    return Status(
        keeper.find(found.names) is not None,
        tuple(
            NodeStatus(
                node,
                keeper.wanted(found, node),
                power.init(found, node) is not None,
                power.answers(found, node),
            )
            for node in found.nodes
        ),
    )


def _image(mine: Names) -> tuple[Path, Tools]:
    """The nodes' base root and the machine's tools, built, and kept while the fleet's folder is there."""
    from sparkserve.pins import fetch
    from sparkserve.terminal import phase

    fetch.fetch(["stage0", "base", "tools", "node"], [], None)
    with phase("Build the nodes' root") as detail:
        root, tools = nix.build(["node-root", "node-tools"], on_line=lambda line: detail(line[:100]))
        nix.keep(root, mine.folder / "root")
        nix.keep(tools, mine.folder / "tools")
    return root, Tools(tools)


def _tools(mine: Names) -> Tools:
    link = mine.folder / "tools"
    # Without the link the machine's own programs must do.
    return Tools(link.resolve() if link.exists() else Path("/usr"))


def _stays(fleet: Fleet) -> bool:
    """Whether what is up is made of the same parts, so that only missing nodes are to be added."""
    try:
        old = record.load(fleet.names)
    except SparkserveError:
        return False
    return old is not None and _parts(old) == _parts(fleet)


def _parts(fleet: Fleet) -> object:
    """What a node cannot change while it runs, nor the keeper."""
    plans = [
        (plan.node, plan.fabric, network.by_node(plan), plan.serving.host, plan.serving.port)
        for plan in fleet.plans
    ]
    return fleet.root, fleet.sizes, fleet.cgroups, plans


def _make(fleet: Fleet) -> None:
    for node in fleet.nodes:
        fleet.names.node(node).folder.mkdir(exist_ok=True)
    keys.make(fleet.names, fleet.nodes, fleet.tools)
    fleet.names.run.mkdir(mode=0o700, exist_ok=True)
    fleet.ssh_config.write_text(keys.config(fleet.names, fleet.plans[0].fleet.nodes))
    wiring.make(fleet)
    record.save(fleet)  # only now: a network that was interrupted half made is made anew
    for node in fleet.nodes:
        power.on(fleet, node)


def _each(fleet: Fleet, call: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(len(fleet.nodes)) as pool:
        list(pool.map(call, fleet.nodes))


def _remove(mine: Names, tools: Tools, *, clean_s: float) -> None:
    # First what would start nodes again.
    for switch in mine.folder.glob("*/switch"):
        switch.unlink(missing_ok=True)
    keeper.stop(mine)
    with powered(mine):
        leftovers.remove(mine, tools, clean_s=clean_s)
