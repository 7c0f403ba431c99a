"""Two sides of `diff` compared: each change once, with its section and the nodes that it is of. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.drift.changes import ABSENT, Change, changes
from sparkserve.drift.sides import PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.drift.sides import Side

# What a person calls the changes below a place. The first that fits counts.
SECTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("nodes",), "nodes"),
    (("modules",), "modules"),
    (("plan", "adapters"), "adapters"),
    (("plan", "engine", "args"), "engine arguments"),
    (("plan", "engine", "env"), "engine environment"),
    (("plan", "host", "sysctls"), "sysctls"),
    (("plan", "host", "kernel_args"), "kernel arguments"),
    (("plan", "host", "units"), "units"),
    (("plan", "host", "files"), "files"),
    (("plan", "host", "mask"), "masked units"),
    (("plan", "host"), "host"),
    (("closure", "layers"), "engine root"),
    (("closure",), "closure"),
    (("pins",), "pins"),
)


class Found(NamedTuple):
    """A change in words of its section, and the nodes it is of; all of them when `nodes` is empty."""

    section: str
    name: str
    change: Change
    nodes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `before` and `after` are left out where there is nothing."""
        values = {"before": self.change.before, "after": self.change.after}
        return {
            "section": self.section,
            "name": self.name,
            "path": list(self.change.path),
            "nodes": list(self.nodes),
            **{key: value for key, value in values.items() if value is not ABSENT},
        }


def compare(a: Side, b: Side, modules: Sequence[Change] = ()) -> list[Found]:
    """What is different in `b`, section by section. `modules` are changed files of a checkout.

    Of two closures of one node each these are compared, whatever the nodes are called.
    """
    ones, others = dict(a.documents), dict(b.documents)
    if len(ones) == len(others) == 1:
        others = dict(zip(ones, others.values(), strict=True))
    known = [part for part in PARTS if part not in unknown(a, b)]
    where: dict[str, list[str]] = {}
    each: dict[str, Change] = {}
    for node in {**ones, **others}:
        for change in _of_node(node, ones, others, known):
            key = json.dumps([change.path, _json(change.before), _json(change.after)], sort_keys=True)
            each[key] = change
            where.setdefault(key, []).append(node)
    both = [node for node in ones if node in others]
    found = [Found(*_called(change), change) for change in modules]
    for key, change in each.items():
        everywhere = where[key] == both or change.path[0] == "nodes"
        found.append(Found(*_called(change), change, () if everywhere else tuple(where[key])))
    titles = [title for _, title in SECTIONS]
    # Stable: within a section the order of the plan stays, and pins are sorted by Nix.
    return sorted(found, key=lambda one: titles.index(one.section) if one.section in titles else len(titles))


def unknown(a: Side, b: Side) -> list[str]:
    """The parts that one of the sides does not have, so that they are not compared."""
    documents = [*a.documents.values(), *b.documents.values()]
    return [part for part in PARTS if not all(part in each for each in documents)]


def _of_node(
    node: str, ones: Mapping[str, Any], others: Mapping[str, Any], known: Sequence[str]
) -> list[Change]:
    if node in ones and node in others:
        return [change for part in known for change in changes(ones[node][part], others[node][part], (part,))]
    return [Change(("nodes", node), *((True, ABSENT) if node in ones else (ABSENT, True)))]


def _called(change: Change) -> tuple[str, str]:
    """The section of a change, and its name there."""
    for prefix, title in SECTIONS:
        if change.path[: len(prefix)] == prefix:
            rest = change.path[len(prefix) :]
            if title == "pins" and len(rest) == 2:
                return title, f"{rest[1]} ({rest[0]})"
            return title, " ".join(rest) or title
    # Another part of the plan is called as it is there.
    return change.path[1], " ".join(change.path[2:]) or change.path[1]


def _json(value: Any) -> Any:
    return {"absent": True} if value is ABSENT else [value]
