"""The operating system of a node beside its closure: files, units, sysctls, kernel, links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.drift.report import Difference, difference
from sparkserve.fabric import check as cables
from sparkserve.fabric import host as fabric
from sparkserve.host import effects, record, verify
from sparkserve.host.change import plan_change
from sparkserve.host.wanted import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.host.system import System
    from sparkserve.host.there import There
    from sparkserve.plan import Plan

# Where somebody on the node adds to a unit; what is elsewhere came with the distribution.
_BY_HAND = ("/etc/", "/run/")


def activation(system: System, folder: Path) -> Iterator[Difference]:
    """Whether the closure at `folder` is the one in effect."""
    known = record.load(system)
    if known.closure != str(folder):
        yield difference("closure", "in effect", str(folder), known.closure)
    if known.pending is not None:
        yield difference("closure", "its activation", "ended", "interrupted: run it again")


def files(system: System, folder: Path, plan: Plan) -> Iterator[Difference]:
    """Every file and link that the closure brings, and what earlier ones left."""
    change = plan_change(system, folder, plan)
    for path in change.todo:
        part = "units" if path.startswith(f"{UNITS}/") else "files"
        yield difference(part, path, *_both(change.target(path), change.now[path]))


def _both(want: There | None, now: There | None) -> tuple[str | None, str | None]:
    return (None if want is None else _words(want)), (None if now is None else _words(now))


def _words(there: There) -> str:
    if there.kind == "link":
        return f"a link to {there.value}"
    return f"sha256 {there.value[:12]}, mode {there.mode:04o}, owner {there.uid}:{there.gid}"


def drop_ins(system: System, plan: Plan) -> Iterator[Difference]:
    """What somebody added to our units beside the closure's own files."""
    for name, values in effects.show(system, list(plan.host.units), "DropInPaths").items():
        found = [path for path in values.get("DropInPaths", "").split() if path.startswith(_BY_HAND)]
        if more := [path for path in found if path not in plan.host.files]:
            yield difference("units", f"additions to {name}", None, " ".join(more))


def policy(system: System, folder: Path, plan: Plan) -> Iterator[Difference]:
    """What the kernel and systemd have, and the links."""
    for part, each in verify.by_part(system, folder, plan):
        what = f"{each.what} (the next boot is to bring it)" if each.reboot else each.what
        yield difference(part, what, each.expected, each.found)


def rdma(system: System, plan: Plan) -> Iterator[Difference]:
    """The RDMA devices of the links."""
    if plan.fabric is not None:
        for each in cables.rdma(plan, fabric.read(system.root)):
            yield difference("links", each.where, each.expected, each.found)
