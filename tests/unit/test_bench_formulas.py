"""The bench's figures, on arrivals made by hand; each right value is worked out in a comment."""

from __future__ import annotations

import pytest

from sparkserve.bench import formulas
from sparkserve.client.reply import Arrival, Reply, Usage


def stream(
    *events: tuple[float, int], started: float = 0.0, seconds: float = 0.0, error: str | None = None
) -> Reply:
    """A reply whose events come at (seconds, tokens so far)."""
    return Reply(
        status=200,
        error=error,
        seconds=seconds or events[-1][0],
        usage=Usage(10, events[-1][1]),
        arrivals=tuple(Arrival(at, "x", tokens) for at, tokens in events),
        started=started,
    )


STEPS = {"sglang:num_requests_total": 1.0}


def test_one_stream_without_speculation() -> None:
    """11 tokens, the first after 0.5 s, one each 0.1 s."""
    reply = stream(*((0.5 + 0.1 * number, 1 + number) for number in range(11)), seconds=2.0)
    found = formulas.decode([reply], STEPS, {})
    assert found["ttft_s"] == 0.5
    assert found["tps"] == pytest.approx(11 / 2.0)  # the whole request took 2 s
    assert found["decode_window_tps"] == pytest.approx(10)  # 10 tokens after the first, in 1 s
    assert found["stream_tps"] == pytest.approx(10)
    assert found["step_ms"] == pytest.approx(100)
    assert found["tokens_per_step"] == 1
    assert found["derived_tps"] == pytest.approx(10)
    assert "accepted_per_verified" not in found
    for percentile in formulas.PERCENTILES:
        assert found[percentile] == pytest.approx(100)


def test_two_streams_with_speculation() -> None:
    """Both get 3 tokens in each step of 60 ms; the second is sent 30 ms later. 4 drafts of 5 slots a step."""
    times = [(0.2 + 0.06 * step, 1 + 3 * step) for step in range(11)]
    replies = [stream(*times), stream(*times, started=0.03)]
    counters = STEPS | {"sglang:spec_verify_calls_total": 20.0}  # 10 steps of each
    found = formulas.decode(replies, counters, {"sglang:spec_num_draft_tokens": 5.0})
    assert found["tokens_per_step"] == pytest.approx(3)  # 60 tokens after the first of each, in 20 calls
    assert found["accepted_per_verified"] == pytest.approx(2 / 4)
    assert found["decode_window_tps"] == pytest.approx(60 / 0.63)  # from 0.2 to 0.83 s
    assert found["stream_tps"] == pytest.approx(30 / 0.6)
    # One step each 60 ms; that the streams end apart makes it 5 % more in a window of 10 steps (owen 6.4).
    assert found["step_ms"] == pytest.approx(63)
    assert found["tps"] == pytest.approx(62 / 0.83)
    assert found["itl_p50_ms"] == pytest.approx(20)  # 3 tokens share 60 ms


def test_a_cap_of_what_is_verified_counts_in_place_of_what_is_drafted() -> None:
    reply = stream((0.1, 1), (0.2, 3), (0.3, 5))
    counters = STEPS | {"sglang:spec_verify_calls_total": 2.0}
    gauges = {"sglang:spec_num_draft_tokens": 6.0, "sglang:spec_cap_length": 3.0}
    found = formulas.decode([reply], counters, gauges)
    assert found["accepted_per_verified"] == pytest.approx(1 / 2)  # 1 of the 2 that are verified, not of 5


def test_five_tokens_in_a_chunk_are_five_tokens() -> None:
    """Issue I03: counted by events, this stream would have a fifth of its speed."""
    reply = stream(*((0.05 * number, 5 * number) for number in range(1, 53)))
    found = formulas.decode([reply], STEPS, {})
    assert found["stream_tps"] == pytest.approx(100)  # 5 each 50 ms, and not 20
    assert found["tps"] == pytest.approx(100)
    assert found["itl_p99_ms"] == pytest.approx(10)


def test_percentiles_are_of_tokens_not_of_events() -> None:
    """90 tokens in one event 0.9 s after the first, then 10 tokens at 0.1 s each: p50 10, p90 10, p99 100."""
    events = [(1.0, 1), (1.9, 91), *((1.9 + 0.1 * number, 91 + number) for number in range(1, 11))]
    found = formulas.latencies([stream(*events)])
    assert found["itl_p50_ms"] == pytest.approx(10)
    assert found["itl_p90_ms"] == pytest.approx(10)
    assert found["itl_p99_ms"] == pytest.approx(100)


def test_what_cannot_be_had_is_not_there() -> None:
    good, bad = stream((0.1, 1), (0.2, 2)), stream((0.1, 1), error="cut off")
    without = formulas.decode([good], {}, {})
    assert "step_ms" not in without
    assert "tokens_per_step" not in without
    assert "step_ms" not in formulas.decode([good, bad], STEPS, {})
    assert formulas.decode([bad], STEPS, {}) == {}
    untold = Reply(
        200, None, 1.0, usage=Usage(1, 9), arrivals=(Arrival(0.1, "a", None), Arrival(0.9, "b", None))
    )
    found = formulas.decode([untold], STEPS, {})
    assert not set(found) & set(formulas.PERCENTILES)
    assert found["stream_tps"] == pytest.approx(8 / 0.8)


def test_what_came_all_at_once_has_no_rate() -> None:
    found = formulas.decode([stream((0.5, 1), (0.5, 9)), stream((0.5, 1), (0.9, 9))], STEPS, {})
    assert "stream_tps" not in found and "step_ms" not in found
    assert found["tps"] == pytest.approx(18 / 0.9)


def test_prefill_is_prompt_tokens_over_the_time_to_the_first() -> None:
    reply = Reply(200, None, 2.5, usage=Usage(2048, 1), arrivals=(Arrival(2.0, "a", 1),))
    assert formulas.prefill(reply) == {"ttft_s": 2.0, "prefill_tps": 1024.0}


def test_hit_rate_by_usage_or_by_counters() -> None:
    told = [Reply(200, None, 1.0, usage=Usage(100, 1, 90)), Reply(200, None, 1.0, usage=Usage(100, 1, 0))]
    assert formulas.hit_rate(told, {}) == pytest.approx(0.45)
    untold = [Reply(200, None, 1.0, usage=Usage(100, 1, None))]
    assert formulas.hit_rate(untold, {}) is None
    counters = {
        'sglang:prompt_tokens_total{is_streaming="true"}': 100.0,
        'sglang:cached_tokens_total{cache_source="device"}': 64.0,
        'sglang:cached_tokens_total{cache_source="host"}': 16.0,
    }
    assert formulas.hit_rate(untold, counters) == pytest.approx(0.8)


def test_overlap_is_the_most_between_first_and_last() -> None:
    replies = [
        stream((1.0, 1), (3.0, 9)),
        stream((0.5, 1), (2.5, 9), started=1.0),  # 1.5 to 3.5
        stream((0.5, 1), (1.0, 9), started=3.0),  # 3.5 to 4.0: it comes as the second goes
    ]
    assert formulas.overlap(replies[:2]) == 2
    assert formulas.overlap(replies[1:]) == 1
    assert formulas.overlap([]) == 0


def test_a_span_counts_the_wait_that_reaches_into_it() -> None:
    """A token each 0.1 s up to 1.0 s, then none for 2.0 s, then again: a prompt was read meanwhile."""
    before = [(0.1 * number, number) for number in range(1, 11)]
    after = [(3.0 + 0.1 * number, 11 + number) for number in range(10)]
    replies = [stream(*before, *after)]
    one = formulas.Acceptance(1.0, None)
    assert formulas.span(replies, 0.0, 1.0, one)["step_ms"] == pytest.approx(100)
    # Half a token from 1.5 to 2.5 s: one step in 2 s.
    assert formulas.span(replies, 1.5, 2.5, one)["step_ms"] == pytest.approx(2000)
    assert formulas.span(replies, 3.0, float("inf"), one)["step_ms"] == pytest.approx(100)
    assert formulas.span(replies, 9.0, float("inf"), one) == {}
