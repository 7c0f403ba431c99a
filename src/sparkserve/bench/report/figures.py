"""From the samples of an arm's boots to one figure a metric, with its interval."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from sparkserve.bench.report import words
from sparkserve.bench.report.model import Figure, Row
from sparkserve.bench.results import ABSURD, METRICS
from sparkserve.stats.describe import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.bench.results import Boot, Point, Result


def of(result: Result) -> tuple[Row, ...]:
    """The points of a result, by the settings that it was measured with."""
    pilot, cases = result.settings.get("min"), result.settings.get("cases")
    return rows(
        result.boots,
        pilot if isinstance(pilot, int) and pilot > 1 else None,
        [case for case in cases if isinstance(case, str)] if isinstance(cases, list) else (),
    )


def rows(boots: Sequence[Boot], pilot: int | None, cases: Sequence[str] = ()) -> tuple[Row, ...]:
    """The points of all boots: cases in the order of `cases` and then of the file, streams upwards.

    A file has them as they were drawn. Prefills are by text and then by length.
    `pilot` is of the rule that stopped the sampling, None where there was none: see `stats.describe`.
    """
    found: dict[str, list[Point]] = {}
    for boot in boots:
        for name, point in boot.points.items():
            found.setdefault(name, []).append(point)
    known = list(dict.fromkeys((*cases, *(points[0].case for points in found.values()))))
    made = [_row(name, points, pilot) for name, points in found.items()]
    return tuple(sorted(made, key=lambda row: (*_order(row, known), row.streams)))


def _order(row: Row, known: Sequence[str]) -> tuple[int, int]:
    length = words.length(row.case)
    if length is None:
        return known.index(row.case), 0
    kind = row.case.rpartition("-")[0]
    return next(i for i, case in enumerate(known) if case.startswith(f"{kind}-")), length


def _row(name: str, points: Sequence[Point], pilot: int | None) -> Row:
    figures = {}
    for metric in METRICS:
        values = [
            [s.metrics[metric] for s in point.samples if 0 <= s.metrics.get(metric, math.inf) < ABSURD]
            for point in points
        ]
        if any(values):
            figures[metric] = figure([boot for boot in values if boot], pilot)
    samples = [sample for point in points for sample in point.samples]
    return Row(
        name=name,
        case=points[0].case,
        streams=points[0].streams,
        text=tuple(dict.fromkeys(point.text for point in points)),
        shared=any(0 < len(set(point.prompts)) < point.streams for point in points),
        samples=len(samples),
        failed=sum(sample.failed for sample in samples),
        figures=figures,
    )


def figure(boots: Sequence[Sequence[float]], pilot: int | None) -> Figure:
    """The figure of a metric whose samples are given by boot; no boot is empty.

    A boot is one draw: its samples share the graphs, the memory's layout and the profiled costs. So with two
    boots or more the interval is over the boots' means, and only one boot has the interval of its samples.
    """
    means = tuple(map(statistics.fmean, boots))
    several = len(means) > 1
    found = describe(means) if several else describe(boots[0], pilot)
    return Figure(
        mean=found.mean,
        low=found.low,
        high=found.high,
        over=None if found.low is None else "boots" if several else "samples",
        boots=means,
        samples=sum(map(len, boots)),
    )
