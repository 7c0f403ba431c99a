"""A result in figures: for each point and metric a mean and its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.bench.results import Result


class Figure(NamedTuple):
    """A mean, and the half width of its 95 % interval; None for one value."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        if self.half is None or not self.mean:
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} ±{abs(self.half / self.mean):.1%}"


def summarize(result: Result) -> dict[str, dict[str, Figure]]:
    """By point and metric, over the means of boots, or over the samples where there is one boot."""
    values: dict[str, dict[str, list[list[float]]]] = {}
    for boot in result.boots:
        for name, point in boot.points.items():
            metrics = values.setdefault(name, {})
            for metric in dict.fromkeys(key for sample in point.samples for key in sample.metrics):
                found = [sample.metrics[metric] for sample in point.samples if metric in sample.metrics]
                metrics.setdefault(metric, []).append(found)
    return {
        name: {
            metric: figure(boots[0] if len(boots) == 1 else [sum(each) / len(each) for each in boots])
            for metric, boots in metrics.items()
        }
        for name, metrics in values.items()
    }


def figure(values: Sequence[float]) -> Figure:
    """The mean of `values` with Student's interval."""
    from scipy import stats

    mean = sum(values) / len(values)
    if len(values) < 2:
        return Figure(mean, None)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return Figure(mean, float(stats.t.ppf(0.975, len(values) - 1)) * spread / math.sqrt(len(values)))
