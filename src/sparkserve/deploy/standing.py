"""Where a fleet stands: what its nodes run beside what is desired of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve.deploy import baseline
from sparkserve.fleet import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.deploy.baseline import Baseline
    from sparkserve.deploy.survey import Found


def rows(found: Mapping[str, Found], fleet: str, baselines: Sequence[Baseline]) -> list[dict[str, Any]]:
    """A row for each generation of each node, with the newest baseline that has it, and if it is desired."""
    desired = baseline.newest(baselines, fleet)
    names = {
        (node.name, node.closure): each.name
        for each in baselines
        if each.fleet == fleet
        for node in each.nodes
    }
    made = [row for node, there in found.items() for row in there.rows(node)]
    for row in made:
        row["baseline"] = names.get((row["node"], row["path"]))
        row["desired"] = desired is not None and row["fleet_id"] == desired.fleet_id
    return made


def words(found: Mapping[str, Found], fleet: str, baselines: Sequence[Baseline]) -> str:
    """What is desired, and which nodes run something else."""
    desired = baseline.newest(baselines, fleet)
    if desired is None:
        return f"Nothing of it was promoted, so nothing is desired: {command('promote NAME', fleet)}."
    text = f"Desired: the fleet id {desired.fleet_id[:12]}, baseline {desired.name} of {desired.promoted_at}."
    others = {
        row["node"]: f"{(row['fleet_id'] or 'none of ours')[:12]}, {row['state']}"
        for row in rows(found, fleet, baselines)
        if row["current"] and not row["desired"]
    }
    others |= {node: "nothing" for node, there in found.items() if there.base is None}
    if not others:
        return f"{text} Observed: all nodes have it."
    return (
        f"{text} Observed: " + "; ".join(f"{node} has {what}" for node, what in sorted(others.items())) + "."
    )
