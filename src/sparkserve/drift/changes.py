"""What differs between two JSON values, told by places that have names. Pure.

Elements of lists go by what they are called: a flag, a node's name, an interface. So one more at the front is
one more, and not a change of all that follow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.drift.words import by_flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ORDER = "the order"
# How the elements of a list are called, the first that all have and no two share.
_NAMES = ("name", "interface", "rank")


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()


class Change(NamedTuple):
    """A place whose value is `before` on one side and `after` on the other, `ABSENT` where there is none."""

    path: tuple[str, ...]
    before: Any
    after: Any


def changes(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """What differs, at the deepest places that both sides have; nothing exactly when they are the same.

    A list that has only another order differs at the place `ORDER` in it, whose values are its names.
    """
    if _text(before) == _text(after):
        return
    found: list[Change] = []
    if isinstance(before, dict) and isinstance(after, dict):
        found += _each(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        one, other = _named(before, path), _named(after, path)
        if one is not None and other is not None:
            found += _each(one, other, path)
            both = [name for name in one if name in other], [name for name in other if name in one]
            if both[0] != both[1]:
                found.append(Change((*path, ORDER), *both))
    # Names do not tell everything: a flag that comes twice has one.
    yield from found or [Change(path, before, after)]


def _each(one: dict[str, Any], other: dict[str, Any], path: tuple[str, ...]) -> Iterator[Change]:
    for name in {**one, **other}:
        place = (*path, name)
        if name in one and name in other:
            yield from changes(one[name], other[name], place)
        else:
            yield Change(place, one.get(name, ABSENT), other.get(name, ABSENT))


def _named(values: Sequence[Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    """The elements of a list by their names; None for a list of things without names."""
    if path[-2:] == ("engine", "args") and all(isinstance(each, str) for each in values):
        return dict(by_flag(values))
    for key in _NAMES:
        if all(isinstance(each, dict) and key in each for each in values):
            found = {str(each[key]): {k: v for k, v in each.items() if k != key} for each in values}
            if len(found) == len(values):
                return found
    if all(isinstance(each, str) for each in values) and len(set(values)) == len(values):
        return dict.fromkeys(values, True)
    return None


def _text(value: Any) -> str:
    # Python holds True for 1, and 1 for 1.0.
    return json.dumps(value, sort_keys=True)
