"""Two arms of boots: error rates hold, intervals cover, changes that are there are found."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from sparkserve.stats import arms

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = 1e-6  # of false alarms, for each random test


def drawn(
    boots: tuple[int, int], points: int, count: int, common: float, change: float = 0.0
) -> Iterator[list[arms.Change]]:
    """Comparisons of boots with sd 3 %, the share `common` of its variance in all points of a boot."""
    seed = secrets.randbits(32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shared = rng.normal(size=(sum(boots), 1)) * common**0.5
        boot = shared + rng.normal(size=(sum(boots), points)) * (1 - common) ** 0.5
        rows = 50 * np.exp(0.03 * boot)
        rows[: boots[0]] *= 1 + change / 100
        yield arms.changes(rows[: boots[0]].tolist(), rows[boots[0] :].tolist())


def within(found: int, count: int, rate: float) -> bool:
    low, high = stats.binom.ppf([BUDGET / 2, 1 - BUDGET / 2], count, rate)
    return bool(low <= found <= high)


@pytest.mark.parametrize(
    ("boots", "points", "common"),
    [((2, 2), 1, 0), ((2, 8), 1, 0), ((3, 3), 8, 0), ((3, 3), 8, 0.95), ((5, 3), 4, 0.5)],
)
def test_one_comparison_in_twenty_has_a_false_alarm(
    boots: tuple[int, int], points: int, common: float
) -> None:
    """However many points there are and however alike they are."""
    count = 1000
    alarms = sum(min(each.p for each in all_) < 0.05 for all_ in drawn(boots, points, count, common))
    assert within(alarms, count, 0.05)


def test_without_the_adjustment_false_alarms_are_many() -> None:
    """The must-fail half: a point's own interval excludes 0 somewhere in a third of comparisons."""
    count = 500
    naive = sum(any(not e.low < 0 < e.high for e in all_) for all_ in drawn((3, 3), 8, count, 0))
    assert naive > stats.binom.ppf(1 - BUDGET, count, 0.1)


@pytest.mark.parametrize("change", [-50, 0, 5, 100])
def test_a_points_interval_covers(change: float) -> None:
    count = 1000
    covered = sum(all_[0].low <= change <= all_[0].high for all_ in drawn((3, 4), 1, count, 0, change))
    assert within(covered, count, 0.95)


@pytest.mark.parametrize("points", [1, 6])
def test_what_is_detectable_is_found_in_four_of_five(points: int) -> None:
    """All points differ by what the median comparison says it could detect.

    Of six one is found in 93 %: judged step down, it is held against fewer when others were found before it.
    """
    count = 400
    size = float(np.median([all_[0].detectable for all_ in drawn((8, 8), points, count, 0)]))
    found = sum(each[0].p < 0.05 for each in drawn((8, 8), points, count, 0, size))
    assert stats.binom.ppf(BUDGET, count, 0.7) < found < stats.binom.ppf(1 - BUDGET, count, 0.97)


def test_one_point_is_the_t_test_on_logarithms() -> None:
    a, b = [52.0, 53.5, 51.0], [50.0, 49.0, 51.5, 50.5]
    own = stats.ttest_ind(np.log(a), np.log(b))
    low, high = own.confidence_interval()
    (found,) = arms.changes([[x] for x in a], [[x] for x in b])
    assert (found.low, found.high) == pytest.approx((100 * np.expm1(low), 100 * np.expm1(high)))
    assert found.p == pytest.approx(own.pvalue, abs=0.01)


def test_the_power_is_that_of_the_noncentral_t() -> None:
    """scipy's own noncentral t, where that has values."""
    critical = stats.t.ppf(0.975, 8)
    delta = arms.noncentrality(8, critical)
    assert stats.nct.sf(critical, 8, delta) == pytest.approx(0.8, abs=0.001)


def test_values_without_any_spread() -> None:
    same, faster = arms.changes([[1.0, 2.2]] * 2, [[1.0, 2.0]] * 2)
    assert (same.percent, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert (faster.percent, faster.low, faster.high) == pytest.approx((10, 10, 10))
    assert faster.p < 0.001


@pytest.mark.parametrize(
    ("a", "b"),
    [([[1.0]], [[1.0], [2.0]]), ([[0.0], [1.0]], [[1.0], [2.0]]), ([[float("nan")], [1.0]], [[1.0], [2.0]])],
)
def test_what_has_no_comparison_is_refused(a: list[list[float]], b: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"boots|above 0"):
        arms.changes(a, b)
