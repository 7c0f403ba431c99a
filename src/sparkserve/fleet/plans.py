"""The plans of a fleet, evaluated by Nix."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sparkserve import checkout, nix, plan
from sparkserve.errors import SparkserveError
from sparkserve.fleet import names

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORE_COPY = re.compile(r"/nix/store/[^/\s]+/")


def evaluate(name: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The plan of every node as Nix gives it, by node name. `settings` are values by option that count more
    than the fleet's own.

    Raises `FLEET.NAME`, `FLEET.UNTRACKED`, what the fleet's own file does wrong (`FLEET.OPTION`,
    `FLEET.ASSERTION`, `FLEET.EVAL` for Nix code that does not evaluate), `PLAN.SCHEMA`, or `NIX.EVAL`.
    """
    names.file(name)
    names.require_tracked(name)
    try:
        values: dict[str, Any] = (
            nix.eval_json(f"lib.fleets.{name}.but", _with(settings))
            if settings
            else nix.eval_json(f"lib.fleets.{name}.plans")
        )
    except SparkserveError as error:
        raise _in_the_file(name, error) from error
    for value in values.values():
        plan.parse(value)
    return values


def load(name: str, settings: Mapping[str, Any] | None = None) -> list[plan.Plan]:
    """The plans of a fleet in rank order. Arguments and errors are those of `evaluate`."""
    plans = [plan.parse(value) for value in evaluate(name, settings).values()]
    return sorted(plans, key=lambda p: p.node.rank)


def host(found: plan.Plan) -> str:
    """The flake attribute of the host closure of a plan's node."""
    return f"hosts.{found.fleet.name}.{found.node.name}"


def require_packages(found: plan.Plan) -> None:
    """Raise `FLEET.OPTION` when a plan is of an engine or a model that this version does not have."""
    packages = checkout.root() / "pkgs"
    if not all((packages / name).is_dir() for name in (found.engine.package, found.engine.model)):
        # Nix knows what to say (nix/host.nix); what is there is not evaluated a second time.
        nix.eval_json(f"{host(found)}.drvPath")


def _with(settings: Mapping[str, Any]) -> str:
    """The function of Nix that calls `but` with `settings`."""
    listed = [{"option": option.split("."), "value": value} for option, value in settings.items()]
    # A JSON string in ASCII is a string of Nix, but for what Nix would put in.
    text = json.dumps(json.dumps(listed)).replace("$", "\\$")
    return f"but: but (builtins.fromJSON {text})"


def _in_the_file(name: str, error: SparkserveError) -> SparkserveError:
    """`error` with the fleet's file as its place, as `FLEET.EVAL` when it is Nix that stopped there.

    Nix does not say which file reads or imports what is not there; but when Nix can name the fleets, git, the
    store and the flake are sound, and the fleet's file is what remains.
    """
    place = f"hosts/{name}/fleet.nix"
    if error.where == "this fleet":
        return SparkserveError(error.id, expected=error.expected, found=error.found, where=place, do=error.do)
    if error.id != "NIX.EVAL":
        return error
    if place not in error.found:
        try:
            nix.eval_json("lib.fleets", "builtins.attrNames")
        except SparkserveError:
            return error
    return SparkserveError(
        "FLEET.EVAL",
        expected="Nix code that evaluates",
        found=_STORE_COPY.sub("", error.found),
        where=place,
        do="Correct what the lines above name, in this file or in one that it imports.",
    )
