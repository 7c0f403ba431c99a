"""From the samples of an arm's boots to one figure a metric, with its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sparkserve.bench.report.model import Figure, Row
from sparkserve.bench.results import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.bench.results import Boot, Point


def rows(boots: Sequence[Boot]) -> tuple[Row, ...]:
    """The points of all boots: cases in the order of the file, streams upwards."""
    found: dict[str, list[Point]] = {}
    for boot in boots:
        for name, point in boot.points.items():
            found.setdefault(name, []).append(point)
    cases = list(dict.fromkeys(points[0].case for points in found.values()))
    made = [_row(name, points) for name, points in found.items()]
    return tuple(sorted(made, key=lambda row: (cases.index(row.case), row.streams)))


def _row(name: str, points: Sequence[Point]) -> Row:
    figures = {}
    for metric in METRICS:
        values = [
            [s.metrics[metric] for s in point.samples if math.isfinite(s.metrics.get(metric, math.nan))]
            for point in points
        ]
        if any(values):
            figures[metric] = figure([boot for boot in values if boot])
    samples = [sample for point in points for sample in point.samples]
    return Row(
        name=name,
        case=points[0].case,
        streams=points[0].streams,
        text=tuple(dict.fromkeys(point.text for point in points)),
        shared=any(len(set(point.prompts)) < len(point.prompts) for point in points),
        samples=len(samples),
        failed=sum(sample.failed for sample in samples),
        figures=figures,
    )


def figure(boots: Sequence[Sequence[float]]) -> Figure:
    """The figure of a metric whose samples are given by boot; no boot is empty.

    A boot is one draw: its samples share the plan of graphs, the memory's layout and the profiled costs. So
    with two boots or more the interval is Student's over the boots' means, and only one boot has its samples.
    """
    means = tuple(_mean(boot) for boot in boots)
    mean = _mean(means)
    varied = means if len(means) > 1 else boots[0]
    low = high = over = None
    if len(varied) > 1:
        half = _half(varied)
        if math.isfinite(half):
            low, high, over = mean - half, mean + half, "boots" if len(means) > 1 else "samples"
    return Figure.model_validate(
        {
            **{"mean": mean, "low": low, "high": high, "over": over, "boots": means},
            "samples": sum(len(boot) for boot in boots),
        }
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)


def _half(values: Sequence[float]) -> float:
    """Half of Student's 95 % interval of the mean; infinite when the values are too far apart for a float."""
    from scipy import stats

    mean = _mean(values)
    spread = sum((value - mean) * (value - mean) for value in values) / (len(values) - 1)
    return float(stats.t.ppf(0.975, len(values) - 1)) * math.sqrt(spread / len(values))
