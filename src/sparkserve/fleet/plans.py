"""The plans of a fleet, evaluated by Nix."""

from __future__ import annotations

from typing import Any

from sparkserve import nix, plan
from sparkserve.fleet import names


def evaluate(name: str) -> dict[str, Any]:
    """The plan of every node as Nix gives it, by node name.

    Raises `FLEET.NAME`, `FLEET.UNTRACKED`, what the fleet's own file does wrong (`FLEET.OPTION`,
    `FLEET.ASSERTION`), `PLAN.SCHEMA`, or `NIX.EVAL`.
    """
    names.file(name)
    names.require_tracked(name)
    values: dict[str, Any] = nix.eval_json(f"lib.fleets.{name}.plans")
    for value in values.values():
        plan.parse(value)
    return values


def load(name: str) -> list[plan.Plan]:
    """The plans of a fleet in rank order. Raises as `evaluate` does."""
    plans = [plan.parse(value) for value in evaluate(name).values()]
    return sorted(plans, key=lambda p: p.node.rank)
