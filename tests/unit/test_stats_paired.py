"""McNemar's exact test, and the probability that a change in quality is found."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from scipy import stats

from sparkserve.stats import paired


def test_p_is_a_coins() -> None:
    assert paired.mcnemar(0, 0) == 1
    assert paired.mcnemar(5, 0) == pytest.approx(2 / 32)
    assert paired.mcnemar(6, 0) == pytest.approx(2 / 64)
    assert paired.mcnemar(0, 6) == paired.mcnemar(6, 0)
    assert paired.mcnemar(7, 1) == pytest.approx(2 * (1 + 8) / 256)


def test_only_a_loss_is_lost() -> None:
    assert paired.lost(6, 0)
    assert not paired.lost(5, 0)
    assert not paired.lost(0, 9)


def test_power_without_fixes_is_the_binomials() -> None:
    """With nothing fixed, six broken tasks are needed."""
    assert paired.power(75, 0.1) == pytest.approx(stats.binom.sf(5, 75, 0.1))
    assert paired.power(75, 0) == 0
    assert paired.power(6, 1) == 1


def test_power_is_how_often_it_fails() -> None:
    seed = secrets.randbits(32)
    print("seed", seed)
    count, tasks, rates = 4000, 75, (0.06, 0.02)

    def fails(broke: int, fixed: int) -> bool:
        return broke - fixed >= 3 or paired.lost(broke, fixed)

    drawn = np.random.default_rng(seed).multinomial(tasks, [*rates, 1 - sum(rates)], count)
    found = sum(fails(int(broke), int(fixed)) for broke, fixed, _ in drawn)
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], count, paired.power(tasks, *rates, fails))
    assert low <= found <= high


def test_rates_must_be_probabilities() -> None:
    with pytest.raises(ValueError, match="rates"):
        paired.power(75, 0.7, 0.4)
