"""A thousand campaigns without a change, and some with one, through files and the whole comparison."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from campaigns import measure, simulated, stopping, study
from sparkserve.stats.stopping import Rule

BUDGET = 1e-6  # of false alarms, for each random test
COUNT = 1000


@pytest.fixture
def rng() -> np.random.Generator:
    seed = secrets.randbits(32)
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.mark.parametrize("boots", measure.BOOTS)
def test_no_change(rng: np.random.Generator, boots: int) -> None:
    counts = study.run(rng, simulated.Shape(), (boots, boots), 0, COUNT)
    low, high = stats.binom.ppf([BUDGET / 2, 1 - BUDGET / 2], COUNT, 0.05)
    assert low <= counts.different <= high
    assert counts.regressions <= counts.different
    # Points of a campaign are alike: as if each campaign had one interval.
    assert counts.covered / counts.intervals * COUNT >= stats.binom.ppf(BUDGET, COUNT, 0.95)


@pytest.mark.parametrize(("boots", "change", "power"), [(3, 10, 0.60), (5, 10, 0.95), (8, 5, 0.75)])
def test_a_change_is_found(rng: np.random.Generator, boots: int, change: float, power: float) -> None:
    """`power` is less than what docs/results/stats.md has, which a worse test would not reach."""
    counts = study.run(rng, simulated.Shape(), (boots, boots), change, COUNT // 2)
    assert counts.regressions >= stats.binom.ppf(BUDGET, COUNT // 2, power)


def test_intervals_cover_with_the_stopping_rule_in_place(rng: np.random.Generator) -> None:
    """Also where samples spread as much as boots do."""
    shape = replace(simulated.Shape(), within=0.03, rule=measure.BENCH)
    counts = study.run(rng, shape, (3, 3), 0, COUNT)
    assert counts.covered / counts.intervals * COUNT >= stats.binom.ppf(BUDGET, COUNT, 0.94)
    assert counts.different <= stats.binom.ppf(1 - BUDGET, COUNT, 0.05)


@pytest.mark.parametrize("rule", [measure.BENCH, Rule(pilot=3)], ids=["bench", "pilot 3"])
@pytest.mark.parametrize("draw", [stopping.normal, stopping.lognormal])
@pytest.mark.parametrize("spread", [0.01, 0.03, 0.1])
def test_means_are_covered(rng: np.random.Generator, rule: Rule, draw: stopping.Draw, spread: float) -> None:
    found = stopping.coverage(stopping.by_rule, rule, draw(rng, spread, (10_000, rule.most)))
    assert found.covered >= stats.binom.ppf(BUDGET, found.means, 0.94)


def test_samples_in_place_of_boots_are_no_comparison(rng: np.random.Generator) -> None:
    """The must-fail half: what a t-test of all samples calls different, most of the time, is nothing."""
    shape = simulated.Shape(points=("prose-c1",))
    wrong = 0
    for _ in range(200):
        arms = [[simulated.boot(rng, shape, "x").points["prose-c1"] for _ in range(3)] for _ in range(2)]
        a, b = ([s.metrics["step_ms"] for point in arm for s in point.samples] for arm in arms)
        wrong += stats.ttest_ind(a, b).pvalue < 0.05
    assert wrong > stats.binom.ppf(1 - BUDGET, 200, 0.2)
