"""What also those need who do without the models of plan and protocol."""

from __future__ import annotations

from sparkserve.errors import SparkserveError

VERSION = 3
LINE_BYTES = 256 * 1024


def key(number: int, state: str, phase: str | None, wanted: bool, reason: str) -> str:
    """Changes when something happened to the group that an operator waits for."""
    return f"{number}/{state}/{phase}/{wanted}/{reason[:80]}"


def no_group(found: str, where: str) -> SparkserveError:
    """The error for a plan of a single node, or of none."""
    return SparkserveError(
        "GROUP.STATE",
        expected="the plan of a node in a group",
        found=found,
        where=where,
        do="Use a fleet of several nodes, such as local-triangle.",
    )
