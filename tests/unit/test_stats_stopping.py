"""The stopping rule covers what it says; the rule that most benches have does not."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from scipy import stats

from sparkserve.stats import describe
from sparkserve.stats.stopping import Rule

BUDGET = 1e-6  # of false alarms, for each random test
TRUE = 100.0


def campaigns(spread: float, count: int) -> list[list[float]]:
    seed = secrets.randbits(32)
    print("seed", seed)
    samples: list[list[float]] = np.random.default_rng(seed).normal(TRUE, spread, (count, 40)).tolist()
    return samples


def naive(samples: list[float]) -> describe.Summary:
    """What many a bench does: at least 3, until the interval is narrow."""
    n = 3
    while n < len(samples) and (describe.describe(samples[:n]).ci95_percent or 0) > 2:
        n += 1
    return describe.describe(samples[:n])


def stein(samples: list[float]) -> describe.Summary:
    rule, n = Rule(), 0
    while more := rule.more(samples[:n]):
        n += more
    return rule.summary(samples[:n])


def covers(found: describe.Summary) -> bool:
    return found.low is not None and found.high is not None and found.low <= TRUE <= found.high


@pytest.mark.parametrize("spread", [1, 3, 10])  # never, mostly and always more than the pilot; 10 is capped
def test_the_rule_covers(spread: float) -> None:
    count = 4000
    covered = sum(covers(stein(samples)) for samples in campaigns(spread, count))
    low, high = stats.binom.ppf([BUDGET / 2, 1 - BUDGET / 2], count, 0.95)
    assert low <= covered <= high


def test_stopping_when_the_interval_is_narrow_does_not() -> None:
    """The must-fail half: were this rule as good, Stein's would be of no use."""
    count = 4000
    covered = sum(covers(naive(samples)) for samples in campaigns(3, count))
    assert covered < stats.binom.ppf(BUDGET, count, 0.94)


def test_a_narrow_pilot_is_enough_and_a_wide_one_is_capped() -> None:
    rule = Rule(precision=2, pilot=3, most=10)
    assert [rule.more([100.0] * n) for n in range(5)] == [3, 2, 1, 0, 0]
    assert rule.more([50, 100, 150]) == 7
    # t(2) = 4.303, sd 1: (4.303 x 1 / 2)^2 = 4.6 samples, whatever comes after the pilot
    assert rule.more([99, 100, 101]) == 2
    assert rule.more([99, 100, 101, 500]) == 1
    assert rule.more([99, 100, 101, 500, 500]) == 0
    assert rule.more([-1, 0, 1]) == 7  # a mean of 0


def test_the_interval_has_the_pilots_spread() -> None:
    found = Rule(pilot=3).summary([99, 100, 101, 500])
    assert found.n == 4
    assert found.high is not None
    assert found.high - found.mean == pytest.approx(4.302653 / 2)  # Student's table, 2 degrees of freedom


def test_description() -> None:
    found = describe.describe([2, 4, 4, 4, 5, 5, 7, 9])  # mean 5, sum of squares 32
    assert (found.n, found.mean, found.median, found.min, found.max) == (8, 5, 4.5, 2, 9)
    assert found.sd == pytest.approx((32 / 7) ** 0.5)
    assert found.ci95_percent == pytest.approx(100 * 2.364624 * (32 / 7) ** 0.5 / 8**0.5 / 5)
    alone = describe.describe([3])
    assert (alone.mean, alone.sd, alone.low, alone.ci95_percent) == (3, None, None, None)
    assert describe.describe([-1, 1]).ci95_percent is None


@pytest.mark.parametrize("wrong", [{"pilot": 1}, {"pilot": 9, "most": 8}, {"precision": 0}])
def test_a_rule_that_cannot_work_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="pilot"):
        Rule(**wrong)
