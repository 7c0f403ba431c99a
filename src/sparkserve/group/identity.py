"""What must be the same on every rank of a group: a fact a name, so that a difference is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.engine.closure import Closure
    from sparkserve.plan import Plan

Fact = bool | int | float | str
# What any other difference changes too.
_SUMS = ("engine root", "harness", "fleet id")


def identity(plan: Plan, closure: Closure) -> dict[str, Fact]:
    """The facts of a node that runs `closure`, the most telling first: each changes the fleet id too."""
    facts: dict[str, Fact] = {"model": plan.serving.model}
    for adapter in plan.adapters:
        facts[f"adapter {adapter.name}"] = "on"
        facts |= {f"{name} of adapter {adapter.name}": value for name, value in adapter.settings.items()}
    facts |= {f"layer {layer.name} of the engine root": layer.diff_id for layer in closure.root.layers}
    # The same layers in other places make another root, and any other option of the fleet another fleet id.
    facts |= {"engine root": closure.root.digest, "harness": closure.harness.digest}
    return {**facts, "fleet id": closure.fleet_id}


def difference(theirs: Mapping[str, Fact], ours: Mapping[str, Fact]) -> str | None:
    """The first fact that a rank does not share with the head, in words; None when they share all."""
    for name in sorted({**ours, **theirs}, key=lambda name: name in _SUMS):
        if theirs.get(name) != ours.get(name):
            return f"{name}: {_words(theirs.get(name))}, the head {_words(ours.get(name))}"
    return None


def _words(fact: Fact | None) -> str:
    return "none" if fact is None else str(fact)[:19]
