"""Whose closure is this? A node takes only its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.host.record import Record
    from sparkserve.host.system import System


def check(system: System, closure: Path, node: str, record: Record) -> None:
    """Raise `NODE.CLOSURE` unless `closure`, which is for `node`, is for this one.

    By its host name, and by what it took before.
    """
    # DGX OS may have a domain in it.
    name = system.name.partition(".")[0]
    if record.node is not None and record.node != node:
        found, do = (
            f"{record.node}, whose closure is in effect",
            f"{record.closure}/bin/deactivate gives it up.",
        )
    elif name != node:
        found, do = (
            f"the host name {name}",
            f"Copy it to {node}, or rename this one: hostnamectl hostname {node}",
        )
    else:
        return
    raise SparkserveError("NODE.CLOSURE", expected=f"the node {node}", found=found, where=str(closure), do=do)
