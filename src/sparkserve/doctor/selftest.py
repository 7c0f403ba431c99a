"""Proves that every check sees its own condition: a healthy host, one change, and this id alone fails.

The changes ship with the package (`fixtures/`): `given` brings the healthy host to where the question arises,
`break` is what is wrong. A fixture in quiet.json has no id: nothing may change by it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve.doctor.check import all_checks
from sparkserve.doctor.facts import Recorded
from sparkserve.doctor.judge import Answer, judge
from sparkserve.doctor.node import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

FIXTURES = Path(__file__).parent / "fixtures"


def base() -> dict[str, Any]:
    """A healthy Spark: rank 1 of a triangle, serving."""
    value: dict[str, Any] = json.loads((FIXTURES / "base.json").read_text(encoding="utf-8"))
    return value


def fixtures() -> dict[str, dict[str, Any]]:
    """The change of every id."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(FIXTURES.glob("*.json")):
        if path.stem not in ("base", "quiet", "given"):
            found |= json.loads(path.read_text(encoding="utf-8"))
    return found


def quiet() -> dict[str, dict[str, Any]]:
    """Changes that no check may mind."""
    value: dict[str, dict[str, Any]] = json.loads((FIXTURES / "quiet.json").read_text(encoding="utf-8"))
    return value


def change(bundle: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """`bundle` with `delta`: files and commands (null removes), `edit` of [old, new] in them, plan values.

    `given` names changes of given.json that come first. Raises `ValueError` when an edit has nothing to do.
    """
    out: dict[str, Any] = copy.deepcopy(dict(bundle))
    if names := delta.get("given"):
        known = json.loads((FIXTURES / "given.json").read_text(encoding="utf-8"))
        for name in names:
            out = change(out, known[name])
    for part in ("files", "commands"):
        for key, value in delta.get(part, {}).items():
            if value is None:
                out[part] = {k: v for k, v in out[part].items() if k != key and not k.startswith(f"{key}/")}
            else:
                out[part][key] = value
    for key, (old, new) in delta.get("edit", {}).items():
        part = "files" if key.startswith("/") else "commands"
        entry = out[part][key]
        if old not in entry:
            raise ValueError(f"{key} has no {old!r}")
        out[part][key] = entry.replace(old, new)
    for path, value in delta.get("plan", {}).items():
        *parents, last = path.split("/")
        into = out["plan"]
        for name in parents:
            into = into[int(name)] if isinstance(into, list) else into.setdefault(name, {})
        if isinstance(into, list):
            into[int(last) :] = [] if value is None else [value, *into[int(last) + 1 :]]
        elif value is None:
            into.pop(last)
        else:
            into[last] = value
    return out


def ask(bundle: Mapping[str, Any]) -> dict[str, Answer]:
    """All answers about a recorded host, by id."""
    node = Node(Recorded(bundle, live=True), bundle["plan"], bundle["checkout"])
    return {answer.check.id: answer for answer in judge(node, all_checks().values(), live=True)}


def problems() -> tuple[list[str], int, int]:
    """What does not hold, how many ids flipped, how many quiet changes stayed quiet."""
    wrong, flipped, still = [], 0, 0
    checks, changes, healthy = all_checks(), fixtures(), base()
    wrong += [f"{id} has no fixture" for id in checks if id not in changes]
    wrong += [f"a fixture for {id}, which is no check" for id in changes if id not in checks]
    plain = ask(healthy)
    wrong += [f"{id} fails on a healthy host" for id, a in plain.items() if a.verdict.status == "fail"]
    for id in checks.keys() & changes.keys():
        given = change(healthy, {"given": changes[id].get("given", [])})
        before, after = ask(given), ask(change(given, changes[id]["break"]))
        moved = _moved(before, after)
        moved |= {other: ("fail", "fail") for other, a in before.items() if a.verdict.status == "fail"}
        if moved.pop(id, None) == ("pass", "fail") and not moved:
            flipped += 1
        else:
            seen = (before[id].verdict.status, after[id].verdict.status)
            wrong.append(
                f"{id}: {seen[0]} became {seen[1]} ({after[id].verdict.why}); others: {moved or 'none'}"
            )
    for name, delta in quiet().items():
        given = change(healthy, {"given": delta.get("given", [])})
        if moved := _moved(ask(given), ask(change(given, delta["break"]))):
            wrong.append(f"{name} must stay quiet, but: {moved}")
        else:
            still += 1
    return sorted(wrong), flipped, still


def _moved(before: Mapping[str, Answer], after: Mapping[str, Answer]) -> dict[str, tuple[str, str]]:
    pairs = {id: (before[id].verdict.status, after[id].verdict.status) for id in before}
    return {id: pair for id, pair in pairs.items() if pair[0] != pair[1]}
