"""How a node is, beside what its closure wants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve import commands, plan
from sparkserve.errors import SparkserveError
from sparkserve.host import record, verify
from sparkserve.host.change import plan_change
from sparkserve.host.there import look

if TYPE_CHECKING:
    from sparkserve.host.system import System


def status(system: System) -> dict[str, Any]:
    """The node's generation and closure in effect, and what differs from it. Changes nothing.

    Raises `NODE.ACTIVATE` and `PLAN.SCHEMA` for a record or a closure that cannot be read.
    """
    known = record.load(system)
    found: dict[str, Any] = {
        "node": known.node,
        "closure": known.closure,
        "generation": generation(system),
        "interrupted": known.pending is not None,
        "edited": [],
        "differences": [],
        "reboot": [],
    }
    if known.closure is None:
        return found
    closure = Path(known.closure)
    if not closure.exists():
        raise SparkserveError(
            "NODE.ACTIVATE",
            expected=f"the closure in effect, {closure}",
            found="nothing there: it was deleted from the store",
            where=system.name,
            do="Copy and activate a closure again: ./sparkserve up.",
        )
    wants = plan.load(closure / "plan.json")
    differs = list(verify.differences(system, closure, wants))
    edited = plan_change(system, closure, wants).todo
    found["edited"] = [path for path in edited if path in known.entries]
    found["differences"] = [str(each) for each in differs if not each.reboot]
    found["reboot"] = [str(each) for each in differs if each.reboot]
    return found


def generation(system: System) -> int | None:
    """The number of the profile's current generation, None without one."""
    there = look(system.at(commands.PROFILE))
    number = re.search(r"-([0-9]+)-link$", there.value) if there and there.kind == "link" else None
    return int(number[1]) if number else None
