"""Result files as one arm of a comparison: boots, and of each boot one mean for a point and metric."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.bench.results import ABSURD, METRICS
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sparkserve.bench.results import Boot, Point, Result

CUT = "cut short"  # how a note of a boot begins that has not all of its samples


def is_cut(boot: Boot) -> bool:
    """Whether it has not all of its samples."""
    return any(note.startswith(CUT) for note in boot.notes)


class Like(NamedTuple):
    """What a point must share in all boots for its figures to be of the same work."""

    model: str
    streams: int
    text: str
    tokens: Any


@dataclass
class Measured:
    """A point in one boot: the prompts in order, and the values of each round, by metric."""

    like: Like
    prompts: tuple[str, ...] = ()
    rounds: dict[int, dict[str, list[float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """Boots by id, each with its points by name. A boot that was measured in several runs is one boot."""

    name: str
    boots: Mapping[str, Mapping[str, Measured]]
    parts: tuple[Boot, ...]  # as they were in the files, without those cut short
    machines: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def read(name: str, results: Sequence[Result]) -> Arm:
    """The arm `name`. Raises `BENCH.RESULT` when it has no whole boot, or one boot measured unlike things."""
    boots: dict[str, dict[str, Measured]] = {}
    parts: list[Boot] = []
    notes: list[str] = []
    for result in results:
        for boot in result.boots:
            notes += [f"Arm {name}, boot {boot.id}: {note}" for note in boot.notes]
            if is_cut(boot):
                notes.append(f"Arm {name}, boot {boot.id} is left out: it was cut short.")
                continue
            if boot in parts:
                raise unlike(f"each boot once in arm {name}", f"boot {boot.id} twice", boot.id)
            parts.append(boot)
            points = boots.setdefault(boot.id, {})
            for point_name, point in boot.points.items():
                like = Like(boot.subject.model, point.streams, point.text, result.settings.get("tokens"))
                measured = points.setdefault(point_name, Measured(like))
                check_alike(point_name, measured.like, like)
                _add(boot, point_name, point, measured)
    if not parts:
        raise unlike(f"a whole boot in arm {name}", "none", f"the {len(results)} files of arm {name}")
    machines = tuple(result.machine for result in results)
    return Arm(name, boots, tuple(parts), machines, tuple(dict.fromkeys(notes)))


def _add(boot: Boot, name: str, point: Point, measured: Measured) -> None:
    measured.prompts = max(measured.prompts, point.prompts, key=len)
    _check_prompts(name, measured.prompts, point.prompts)
    for sample in point.samples:
        values = measured.rounds.setdefault(sample.round, {})
        for metric, value in sample.metrics.items():
            if metric not in METRICS or not 0 <= value < ABSURD:
                raise unlike(
                    "known metrics with values from 0 on", f"{metric} = {value}", f"{boot.id}, {name}"
                )
            values.setdefault(metric, []).append(value)


def check(points: Iterable[tuple[str, Measured]]) -> None:
    """Raise `BENCH.RESULT` unless all that have one name are of the same work."""
    first: dict[str, Measured] = {}
    for name, measured in points:
        known = first.setdefault(name, measured)
        check_alike(name, known.like, measured.like)
        _check_prompts(name, known.prompts, measured.prompts)


def check_alike(name: str, one: Like, other: Like) -> None:
    """Raise `BENCH.RESULT` for a point `name` that is two different ones."""
    for what, a, b in zip(Like._fields, one, other, strict=True):
        if a != b:
            raise unlike(f"one {what} at {name} in all boots", f"{a} and {b}", name)


def _check_prompts(name: str, one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """A boot with more rounds sends more prompts; those that both sent must be the same."""
    if any(a != b for a, b in zip(one, other, strict=False)):
        raise unlike(f"the same prompts at {name} in all boots", "others", name)


def unlike(expected: str, found: str, where: str) -> SparkserveError:
    """The error for results that make no comparison."""
    return SparkserveError(
        "BENCH.RESULT",
        expected=expected,
        found=found,
        where=where,
        do="Compare boots that the same bench command measured, with the same seed.",
    )


def rounds(name: str, boots: Sequence[Mapping[str, Measured]]) -> set[int]:
    """The rounds of point `name` that all `boots` have.

    Rounds have different texts, which differ by about 5 % with speculation (owen 12.6). A boot that took more
    of them would differ by its texts, and not by its speed.
    """
    return set.intersection(*(set(boot[name].rounds) for boot in boots))


def means(
    name: str, metric: str, boots: Sequence[Mapping[str, Measured]], common: set[int]
) -> list[float] | None:
    """One mean for each boot, over the `common` rounds; None unless every one of them has `metric`."""
    try:
        return [
            statistics.fmean(statistics.fmean(boot[name].rounds[number][metric]) for number in sorted(common))
            for boot in boots
        ]
    except KeyError:
        return None
