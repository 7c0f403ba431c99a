"""What `diff` compares: host closures and generations of a node. States of a checkout: revisions.py."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparkserve import commands
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sparkserve.runner import Runner

PARTS = ("plan", "closure", "pins")


@dataclass(frozen=True)
class Side:
    """One side: a document per node, of the parts that are known of it: `plan`, `closure` and `pins`.

    `commit` is that of a state of a checkout, and "" for its files as they are now.
    """

    label: str
    documents: dict[str, dict[str, Any]]
    fleet_id: str | None = None
    commit: str | None = None


def of_folder(folder: Path) -> Side:
    """The host closure at `folder`, of whatever version. Raises `PLAN.SCHEMA` when it is none."""
    return _of_texts(str(folder), [_text(folder / f"{name}.json") for name in PARTS])


def of_generation(runner: Runner, node: str, number: int) -> Side:
    """A generation of a node's profile, read over `runner`.

    Raises `DEPLOY.NOTHING` when the node has none of that number, `PLAN.SCHEMA` when it is no host closure.
    """
    from sparkserve.runner import check
    from sparkserve.transport import deliver

    there = {each.number: each.path for each in deliver.generations(runner, node)}
    if number not in there:
        raise SparkserveError(
            "DEPLOY.NOTHING",
            expected=f"a generation {number}",
            found=f"the generations {' '.join(map(str, there)) or 'of nobody'}",
            where=node,
            do="Name one of them.",
        )
    texts = check(runner, node, commands.read_closures(there[number])).split("\0")
    return _of_texts(f"generation {number} of {node}, {there[number]}", texts[: len(PARTS)])


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="backslashreplace")
    except OSError:
        return ""


def _of_texts(label: str, texts: list[str]) -> Side:
    try:
        given = {name: json.loads(text) for name, text in zip(PARTS, texts, strict=True) if text.strip()}
        if not {"plan", "closure"} <= given.keys():
            raise ValueError("neither" if not given else f"only {', '.join(given)}.json")
        built, node = given["closure"], given["plan"]["node"]["name"]
        parts = {"plan": given["plan"], "closure": _told(built)}
        if "pins" in given:
            parts["pins"] = versions(given["pins"])
        return Side(label, {node: parts}, built["fleet_id"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SparkserveError(
            "PLAN.SCHEMA",
            expected="a host closure with plan.json and closure.json",
            found=str(error) if type(error) is ValueError else f"other fields: {error!r}",
            where=label,
            do="Name a host closure, or a generation that has one.",
        ) from None


def _told(built: Mapping[str, Any]) -> dict[str, Any]:
    """What of a closure.json says something of its own: no sums of other parts, no paths of equal bytes."""
    layers = [{key: each[key] for key in ("name", "target", "diff_id")} for each in built["root"]["layers"]]
    return {
        "layers": layers,
        "harness": built["harness"]["digest"],
        **{key: built[key] for key in ("argv", "env", "bwrap", "guard")},
    }


def versions(lists: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Pins by list and name: their versions, with the first digits of their hashes."""
    found: dict[str, dict[str, str]] = {profile: {} for profile in lists}
    for profile, pins in lists.items():
        for each in pins:
            # A name may be that of two: a Debian package, and the file that was taken out of it.
            before = f"{found[profile][each['name']]}, " if each["name"] in found[profile] else ""
            found[profile][each["name"]] = f"{before}{each['version']} ({each['sha256'][:8]})"
    return found
