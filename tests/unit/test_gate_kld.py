"""kld: its numbers against sums by hand, and its verdict over runs of an engine whose logits drift."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest
from gate_world import evidence, run
from scripted import Script

from sparkserve.gates import divergence, panels
from sparkserve.gates.contract import CannotRunError
from sparkserve.gates.kinds import kld
from sparkserve.plan import Plan

if TYPE_CHECKING:
    from sparkserve.gates.contract import Outcome
    from sparkserve.gates.evidence import Evidence

CONTEXT = 4096


def logs(*shares: float) -> dict[int, float]:
    return {token: math.log(share) for token, share in enumerate(shares)}


def test_by_hand() -> None:
    # Two tokens and a tail of nothing: 0.5 ln(0.5/0.25) + 0.5 ln(0.5/0.75)
    right = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert divergence.kl(logs(0.5, 0.5), logs(0.25, 0.75)) == pytest.approx(right, abs=1e-6)
    # The tail is a bucket: 0.6 ln(0.6/0.3) + 0.4 ln(0.4/0.7)
    right = 0.6 * math.log(2) + 0.4 * math.log(4 / 7)
    assert divergence.kl(logs(0.6), logs(0.3)) == pytest.approx(right, abs=1e-9)
    # A token that the candidate has not gets its floor, 0.1, and what is left, 0.2, is its tail.
    candidate = {0: math.log(0.7), 9: math.log(0.1)}
    right = 0.5 * math.log(0.5 / 0.7) + 0.4 * math.log(0.4 / 0.1) + 0.1 * math.log(0.1 / 0.2)
    assert divergence.kl(logs(0.5, 0.4), candidate) == pytest.approx(right, abs=1e-9)
    # One way is not the other.
    assert divergence.kl(logs(0.9, 0.1), logs(0.5, 0.5)) != pytest.approx(
        divergence.kl(logs(0.5, 0.5), logs(0.9, 0.1)), abs=1e-3
    )


def test_never_negative_and_zero_for_equal_and_never_above_the_whole() -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)  # noqa: S311

    def full() -> list[float]:
        weights = [math.exp(draw.gauss(0, draw.choice((0.1, 1, 4)))) for _ in range(40)]
        return [weight / sum(weights) for weight in weights]

    def top(shares: list[float], count: int) -> dict[int, float]:
        best = sorted(range(40), key=lambda token: -shares[token])[:count]
        return {token: math.log(shares[token]) for token in best}

    for _ in range(2000):
        one, other = full(), full()
        count = draw.randint(1, 12)
        assert divergence.kl(top(one, count), top(one, count)) == pytest.approx(0, abs=1e-9)
        found = divergence.kl(top(one, count), top(other, count))
        assert found >= 0 and math.isfinite(found)
        # Buckets lose information, so where no floor stands in for a value, the whole KL is an upper bound.
        whole = sum(a * math.log(a / b) for a, b in zip(one, other, strict=True))
        assert divergence.kl(top(one, count), top(other, 40)) <= whole + 1e-6
        closer = [0.9 * a + 0.1 * b for a, b in zip(one, other, strict=True)]
        assert divergence.kl(top(one, count), top(closer, 40)) <= divergence.kl(
            top(one, count), top(other, 40)
        )


@pytest.mark.parametrize("bad", [{}, {1: math.nan}, {1: 0.5}])
def test_no_log_probabilities(bad: dict[int, float]) -> None:
    for one, other in ((bad, logs(0.5)), (logs(0.5), bad)):
        with pytest.raises(ValueError, match="no log probabilities"):
            divergence.kl(one, other)


def test_only_positions_up_to_the_first_other_token_count() -> None:
    def answer(*ids: int) -> dict[str, Any]:
        return {"ids": list(ids), "top": [[[token, math.log(0.9)], [7, math.log(0.05)]] for token in ids]}

    values, at = kld.positions(answer(1, 2, 3, 4), answer(1, 2, 5, 6))
    assert at == 2 and len(values) == 3
    assert values[:2] == pytest.approx([0, 0], abs=1e-12) and values[2] > 1
    values, at = kld.positions(answer(1, 2), answer(1, 2))
    assert at is None and values == pytest.approx([0, 0], abs=1e-12)


def test_percentile_is_one_of_the_values() -> None:
    assert divergence.percentile([5, 1, 4, 2, 3], 0.95) == 5
    assert divergence.percentile([5, 1, 4, 2, 3], 0.4) == 2
    assert divergence.percentile([7], 0.5) == 7


def test_texts_are_different_long_enough_and_the_same_for_ever() -> None:
    found = [panels.text(number, 300) for number in range(8)]
    assert len({text[:200] for text in found}) == 8
    assert found == [panels.text(number, 300) for number in range(8)]
    assert all(len(text) >= 1800 for text in found)
    # A longer one begins with the shorter one: a smaller context asks for a prefix.
    assert all(panels.text(number, 900).startswith(found[number][:1500]) for number in range(8))
    assert panels.fitted(panels.LONG, 7000)[-1] == 7000 and panels.fitted((1, 2), 7) == [1, 2]


@pytest.fixture(scope="module")
def reference() -> Evidence:
    return evidence("kld", run("kld", Script(context=CONTEXT)))


def judged(reference: Evidence, script: Script) -> Outcome:
    return kld.compare(reference, evidence("kld", run("kld", script)))


def test_the_same_stack_is_at_zero(reference: Evidence) -> None:
    outcome = judged(reference, Script(context=CONTEXT))
    assert outcome.passed and outcome.measured["mean"] == 0 and outcome.measured["divergences"] == 0
    # An answer may end by itself.
    assert 0.9 * 6 * 48 <= float(str(outcome.measured["positions"])) <= 6 * 48


def test_small_drift_passes_with_its_size_and_large_drift_fails(reference: Evidence) -> None:
    means = []
    for drift in (0.05, 0.1, 0.6):
        outcome = judged(reference, Script(context=CONTEXT, drift=drift))
        means.append(float(str(outcome.measured["mean"])))
        assert outcome.passed is (drift < 0.5), outcome.measured
    assert 0 < means[0] < means[1] < means[2]


def test_collected_is_no_verdict_and_a_plan_that_names_it_needs_a_reference(
    reference: Evidence,
) -> None:
    assert "no verdict" in reference.summary
    plan = Plan.model_construct(gates=("kld",))
    with pytest.raises(CannotRunError, match="no reference"):
        run("kld", Script(context=CONTEXT), plan=plan)


def test_other_texts_are_refused(reference: Evidence) -> None:
    other = evidence("kld", run("kld", Script(context=2048)))
    with pytest.raises(CannotRunError, match="other texts"):
        kld.compare(reference, other)
    with pytest.raises(CannotRunError, match="no texts"):
        kld.compare(other.model_copy(update={"details": {}}), other)


def test_log_probabilities_that_are_no_numbers_cannot_be_judged() -> None:
    with pytest.raises(CannotRunError, match="no numbers"):
        run("kld", Script(context=CONTEXT, nan="null"))
