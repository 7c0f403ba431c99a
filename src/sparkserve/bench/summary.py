"""A result in figures: for each point and metric a mean and its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.stats.describe import describe

if TYPE_CHECKING:
    from sparkserve.bench.results import Result
    from sparkserve.stats.describe import Summary


def summarize(result: Result) -> dict[str, dict[str, Summary]]:
    """By point and metric: over the means of boots; over the samples where there is one boot.

    Samples of one boot have the interval of their stopping rule; what boots differ by is not in it.
    """
    values: dict[str, dict[str, list[list[float]]]] = {}
    for boot in result.boots:
        for name, point in boot.points.items():
            metrics = values.setdefault(name, {})
            for metric in dict.fromkeys(key for sample in point.samples for key in sample.metrics):
                found = [sample.metrics[metric] for sample in point.samples if metric in sample.metrics]
                metrics.setdefault(metric, []).append(found)
    pilot = int(result.settings.get("min", 0)) or None
    return {
        name: {
            metric: describe(boots[0], pilot)
            if len(boots) == 1
            else describe([sum(each) / len(each) for each in boots])
            for metric, boots in metrics.items()
        }
        for name, metrics in values.items()
    }


def words(found: Summary) -> str:
    """The mean, and half of its interval in percent."""
    if found.ci95_percent is None:
        return f"{found.mean:.4g}"
    return f"{found.mean:.4g} ±{found.ci95_percent:.1f} %"
