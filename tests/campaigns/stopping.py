"""How often the interval of a mean covers, under the stopping rule and under the one of most benches."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.stats.describe import Summary, describe, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from sparkserve.stats.stopping import Rule

    Draw = Callable[[np.random.Generator, float, tuple[int, int]], list[list[float]]]


_quantile = functools.cache(t_quantile)


class Covered(NamedTuple):
    """Of that many `means`; `samples` is how many there were on average."""

    covered: int
    means: int
    samples: float


def normal(rng: np.random.Generator, spread: float, shape: tuple[int, int]) -> list[list[float]]:
    """Samples with mean 1 and standard deviation `spread`."""
    drawn: list[list[float]] = rng.normal(1, spread, shape).tolist()
    return drawn


def lognormal(rng: np.random.Generator, spread: float, shape: tuple[int, int]) -> list[list[float]]:
    """The same, with a tail to the right."""
    square = math.log1p(spread**2)
    drawn: list[list[float]] = rng.lognormal(-square / 2, math.sqrt(square), shape).tolist()
    return drawn


def by_rule(rule: Rule, samples: Sequence[float]) -> Summary:
    """What the bench does."""
    n = 0
    while more := rule.more(samples[:n]):
        n += more
    return rule.summary(samples[:n])


def naive(rule: Rule, samples: Sequence[float]) -> Summary:
    """As many a bench does: on until the interval is narrow enough, or `most` are there."""
    total = squares = 0.0
    for n, sample in enumerate(samples, 1):
        total += sample
        squares += sample * sample
        if n >= rule.pilot:
            variance = max(0.0, squares - total**2 / n) / (n - 1)
            half = _quantile(n - 1) * math.sqrt(variance / n)
            if half <= abs(total / n) * rule.precision / 100 or n == rule.most:
                break
    return describe(samples[:n])


def coverage(
    stop: Callable[[Rule, Sequence[float]], Summary], rule: Rule, drawn: Sequence[Sequence[float]]
) -> Covered:
    """How many intervals have the true mean, 1."""
    covered = total = 0
    for samples in drawn:
        found = stop(rule, samples)
        assert found.low is not None and found.high is not None
        covered += found.low <= 1 <= found.high
        total += found.n
    return Covered(covered, len(drawn), total / len(drawn))
