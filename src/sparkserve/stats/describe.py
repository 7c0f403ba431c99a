"""A few samples in a few numbers."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95


class Summary(NamedTuple):
    """Unit of the samples, except `ci95_percent`: half of the 95 % interval, in percent of the mean.

    `low` and `high` are that interval. What one sample cannot say (sd, interval) is None, and so is a percent
    of a mean of 0.
    """

    n: int
    mean: float
    median: float
    min: float
    max: float
    sd: float | None
    low: float | None
    high: float | None
    ci95_percent: float | None


def describe(samples: Sequence[float], pilot: int | None = None) -> Summary:
    """Summarise one or more samples, with Student's t-interval of the mean.

    `pilot`: where a `stopping.Rule` chose the number of samples, its pilot. The interval then has the pilot's
    standard deviation and degrees of freedom; with those of all samples it would cover too rarely.
    """
    from math import sqrt

    n, mean = len(samples), statistics.fmean(samples)
    sd = statistics.stdev(samples) if n > 1 else None
    middle = (n, mean, statistics.median(samples), min(samples), max(samples), sd)
    first = samples if pilot is None else samples[:pilot]
    if len(first) < 2:
        return Summary(*middle, None, None, None)
    half = t_quantile(len(first) - 1) * statistics.stdev(first) / sqrt(n)
    return Summary(*middle, mean - half, mean + half, 100 * half / abs(mean) if mean else None)


def t_quantile(df: int, level: float = LEVEL) -> float:
    """How many standard errors each side of the mean an interval of `level` is wide."""
    from scipy import special

    return float(special.stdtrit(df, (1 + level) / 2))
