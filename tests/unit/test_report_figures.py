"""A figure's interval: of what varied, and only of that."""

from __future__ import annotations

import math
import random

import pytest
import report_values as values

from sparkserve.bench.report import build, figures

T3 = 4.302652729911275  # Student's t, 2 degrees of freedom, 97.5 %: R, qt(0.975, 2)
T4 = 3.182446305284263  # qt(0.975, 3)


def test_of_boots_samples_within_them_do_not_count() -> None:
    seed = random.randrange(2**32)  # noqa: S311
    draw = random.Random(seed)  # noqa: S311
    means = [draw.uniform(90, 110) for _ in range(3)]
    tight = figures.figure([[m, m, m] for m in means], None)
    loose = figures.figure([[m - 9, m, m + 9] for m in means], None)
    mean = sum(means) / 3
    half = T3 * math.sqrt(sum((m - mean) ** 2 for m in means) / 2) / math.sqrt(3)
    for found in (tight, loose):
        assert found.over == "boots", seed
        assert found.low == pytest.approx(mean - half), seed
        assert found.high == pytest.approx(mean + half), seed
        assert found.boots == pytest.approx(means), seed
        assert found.samples == 9


def test_of_one_boot_its_samples_and_says_so() -> None:
    found = figures.figure([[99.0, 101.0, 103.0, 97.0]], None)
    sd = math.sqrt((1 + 1 + 9 + 9) / 3)
    assert (found.mean, found.over) == (100.0, "samples")
    assert found.high == pytest.approx(100 + T4 * sd / 2)
    # With a rule that looked at the first three, their spread counts.
    assert figures.figure([[99.0, 101.0, 103.0, 97.0]], 3).high == pytest.approx(100 + T3 * 2 / 2)


def test_one_sample_has_no_interval() -> None:
    found = figures.figure([[5.0]], None)
    assert (found.mean, found.low, found.high, found.over) == (5.0, None, None, None)


@pytest.mark.parametrize("absurd", [math.nan, math.inf, -math.inf, 1e308, -5.0])
def test_what_is_no_number_is_not_measured(absurd: float) -> None:
    waves = [values.sample({"tps": absurd, "step_ms": 3.0}), values.sample({"tps": 7.0})]
    (row,) = figures.rows([values.boot(0, [values.point("prose", 1, waves)])], None)
    assert row.figures["tps"].mean == 7.0
    assert row.figures["tps"].samples == 1
    assert row.figures["step_ms"].mean == 3.0


def test_rows_are_over_boots_in_the_order_of_cases() -> None:
    one = [values.sample({"tps": 1.0})]
    boots = [
        values.boot(0, [values.point("b", 4, one), values.point("a", 1, one)]),
        values.boot(1, [values.point("b", 1, one), values.point("b", 4, one)]),
    ]
    rows = figures.rows(boots, None)
    assert [row.name for row in rows] == ["b-c1", "b-c4", "a-c1"]
    assert [row.samples for row in rows] == [1, 2, 1]


def test_rows_of_a_shuffled_file_are_as_the_settings_say() -> None:
    one = [values.sample({"tps": 1.0, "prefill_tps": 1.0})]
    names = ("code", "real-4096", "novel-512", "prose", "novel-4096", "real-512")
    boots = [values.boot(0, [values.point(name, 1, one) for name in names])]
    report = build.build([("a", values.result(boots, settings={"cases": ["prose", "code"]}))], {})
    order = ["prose", "code", "real-512", "real-4096", "novel-512", "novel-4096"]
    assert [row.case for row in report.arms[0].rows] == order


def test_pilot_of_the_settings_is_used() -> None:
    waves = [values.sample({"tps": tps}) for tps in (99.0, 101.0, 103.0, 97.0)]
    boots = [values.boot(0, [values.point("prose", 1, waves)])]
    report = build.build([("a", values.result(boots, settings={"min": 3}))], {})
    assert report.arms[0].rows[0].figures["tps"].high == pytest.approx(100 + T3 * 2 / 2)


def test_arms_of_one_name_are_told_apart() -> None:
    empty = values.result([])
    report = build.build([("run", empty), ("run", empty), ("other", empty)], {})
    assert [arm.name for arm in report.arms] == ["run 1", "run 2", "other"]
