"""The plans of a fleet, evaluated by Nix."""

from __future__ import annotations

import re
from typing import Any

from sparkserve import nix, plan
from sparkserve.errors import SparkserveError
from sparkserve.fleet import names

_STORE_COPY = re.compile(r"/nix/store/[^/\s]+/")


def evaluate(name: str) -> dict[str, Any]:
    """The plan of every node as Nix gives it, by node name.

    Raises `FLEET.NAME`, `FLEET.UNTRACKED`, what the fleet's own file does wrong (`FLEET.OPTION`,
    `FLEET.ASSERTION`, `FLEET.EVAL` for Nix code that does not evaluate), `PLAN.SCHEMA`, or `NIX.EVAL`.
    """
    names.file(name)
    names.require_tracked(name)
    try:
        values: dict[str, Any] = nix.eval_json(f"lib.fleets.{name}.plans")
    except SparkserveError as error:
        raise _in_the_file(name, error) from error
    for value in values.values():
        plan.parse(value)
    return values


def load(name: str) -> list[plan.Plan]:
    """The plans of a fleet in rank order. Raises as `evaluate` does."""
    plans = [plan.parse(value) for value in evaluate(name).values()]
    return sorted(plans, key=lambda p: p.node.rank)


def _in_the_file(name: str, error: SparkserveError) -> SparkserveError:
    """`error` itself, or `FLEET.EVAL` when Nix stopped in the fleet's own file."""
    place = f"hosts/{name}/fleet.nix"
    if error.id != "NIX.EVAL" or place not in error.found:
        return error
    return SparkserveError(
        "FLEET.EVAL",
        expected="Nix code that evaluates",
        found=_STORE_COPY.sub("", error.found),
        where=place,
        do="The lines above show the spot.",
    )
