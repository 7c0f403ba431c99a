"""Many campaigns through the whole comparison, as files, and what came of them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy import stats

from campaigns import simulated
from sparkserve.bench import results
from sparkserve.bench.compare import compare
from sparkserve.stats.arms import ALPHA

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from sparkserve.bench.compare import Comparison


@dataclass
class Counts:
    """Of `campaigns`: how many called any point different, or a regression; of all intervals: how many cover.

    Different is what `--tolerance 0` calls better or worse; a regression is what the default tolerance does.
    """

    campaigns: int = 0
    different: int = 0
    regressions: int = 0
    intervals: int = 0
    covered: int = 0
    detectable: list[float] = field(default_factory=list)

    def add(self, found: Comparison, truth: Callable[[str], float]) -> None:
        gating = [row for row in found.rows if row.gates]
        self.campaigns += 1
        self.different += any(row.p is not None and row.p < ALPHA for row in gating)
        self.regressions += found.regression
        for row in gating:
            assert row.low is not None and row.high is not None and row.detectable is not None
            self.intervals += 1
            self.covered += row.low <= truth(row.point) <= row.high
            self.detectable.append(row.detectable)

    def join(self, other: Counts) -> None:
        self.campaigns += other.campaigns
        self.different += other.different
        self.regressions += other.regressions
        self.intervals += other.intervals
        self.covered += other.covered
        self.detectable += other.detectable

    def as_dict(self) -> dict[str, Any]:
        return {
            "campaigns": self.campaigns,
            "different": rate(self.different, self.campaigns),
            "regression": rate(self.regressions, self.campaigns),
            # Of one campaign they are not independent: counted as if each campaign had one.
            "coverage": rate(round(self.covered * self.campaigns / self.intervals), self.campaigns),
            "detectable": round(sorted(self.detectable)[len(self.detectable) // 2], 2),
        }


def rate(found: int, count: int) -> dict[str, float]:
    """A share in percent, with its exact binomial interval of 95 %."""
    interval = stats.binomtest(found, count).proportion_ci(0.95, "exact")
    shares = (found / count, interval.low, interval.high)
    return {name: round(100 * x, 2) for name, x in zip(("percent", "low", "high"), shares, strict=True)}


def run(
    rng: np.random.Generator,
    shape: simulated.Shape,
    boots: tuple[int, int],
    change: float,
    count: int,
    spread: float = 1.0,
) -> Counts:
    """`count` campaigns of `boots` in A and B. A is slower by `change` percent and spreads `spread` times."""
    counts = Counts()
    shape_a = replace(shape, between=shape.between * spread)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            a = simulated.write(Path(folder), rng, shape_a, "a", boots[0], change)
            b = simulated.write(Path(folder), rng, shape, "b", boots[1], 0)
            read_a, read_b = ([results.read(file) for file in files] for files in (a, b))
            counts.add(compare(read_a, read_b), lambda point: change if point in shape.slowed else 0.0)
    return counts
