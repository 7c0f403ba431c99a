"""States of this checkout as sides of `diff`: a commit, or the files as they are now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sparkserve import checkout, nix
from sparkserve.drift.changes import ABSENT, Change
from sparkserve.drift.sides import Side, versions
from sparkserve.errors import SparkserveError
from sparkserve.fleet import names, plans
from sparkserve.pins import BUILDER

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = "."


def of_commit(name: str, fleet: str) -> Side | None:
    """The commit that git calls `name`; None when it knows none.

    Raises `FLEET.NAME` for what cannot be a fleet, and what evaluating `fleet` at that commit raises.
    """
    names.check(fleet)
    line = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    try:
        commit = names.git(["git", *line]).strip()
    except SparkserveError as error:
        if error.found and "expected commit type" not in error.found:
            raise
        return None  # it is quiet about names alone, not about a tag or HEAD^{tree} that is no commit
    values = nix.eval_json(f"lib.fleets.{fleet}.plans", commit=commit)
    return _side(f"{fleet} of {name} ({commit[:12]})", commit, values)


def of_here(fleet: str) -> Side:
    """The checkout as it is now, with what is not committed. Raises as `plans.evaluate`."""
    return _side(f"{fleet} of {checkout.root()}", "", plans.evaluate(fleet))


def modules(a: Side, b: Side, fleet: str) -> list[Change]:
    """The files of modules and of the fleet that are others in `b`; none unless both are of this checkout."""
    if a.commit is None or b.commit is None or a.commit == b.commit:
        return []
    commits = [commit for commit in (a.commit, b.commit) if commit]
    line = ["git", "diff", "--name-only", "--no-renames", "-z", *commits, "--", "modules", f"hosts/{fleet}"]
    paths = [path for path in names.git(line).split("\0") if path]
    return [Change(("modules", path), _text(a.commit, path), _text(b.commit, path)) for path in paths]


def _side(label: str, commit: str, values: dict[str, Any]) -> Side:
    one = next(iter(values.values()))
    # The same lists as in a host closure (nix/host.nix).
    guard = ["cc"] if one.get("guard") else []
    lists = (*BUILDER, one["engine"]["package"], one["engine"]["model"], *guard)
    pins = versions({name: _pins(commit, name) for name in lists})
    return Side(label, {node: {"plan": value, "pins": pins} for node, value in values.items()}, None, commit)


def _pins(commit: str, profile: str) -> Sequence[Any]:
    text = _text(commit, f"nix/pins/{profile}.json")
    # A tree is made of a package that is in the list too.
    return [] if text is ABSENT else [each for each in json.loads(text)["pins"] if each["kind"] != "tree"]


def _text(commit: str, path: str) -> Any:
    """A file of the checkout at `commit`, or now; `ABSENT` when it was not there."""
    if not commit:
        file = checkout.root() / path
        return file.read_text(errors="backslashreplace") if file.exists() else ABSENT
    there = names.git(["git", "ls-tree", "-z", "--name-only", commit, "--", path])
    return names.git(["git", "show", f"{commit}:{path}"]) if there else ABSENT
