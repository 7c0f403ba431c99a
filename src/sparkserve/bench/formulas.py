"""The metrics of one sample from its replies and the engine's counters. Pure; docs/bench.md has the formulas.

Tokens are the engine's usage counts, never the number of events: one event of a speculating engine carries
several tokens, and counting events understates it 3.5 times (mia 9.4).
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench import counters as names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.client.reply import Reply

PERCENTILES = {"itl_p50_ms": 0.5, "itl_p90_ms": 0.9, "itl_p99_ms": 0.99}


class Acceptance(NamedTuple):
    """Tokens a stream gets per step, and drafted tokens accepted of those verified, None without drafts."""

    tokens_per_step: float
    accepted_per_verified: float | None


def decode(
    replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
) -> dict[str, float]:
    """The metrics of a wave of streams that were sent at once; those of failed ones are left out.

    `growth` is what the counters grew by, `now` what the gauges say. A metric that cannot be had is not
    there: no step time when a stream failed or the engine has no counters, no ITL without usage in each
    event.
    """
    good = [reply for reply in replies if reply.error is None and reply.usage and reply.arrivals]
    if not good:
        return {}
    begin = min(reply.started for reply in good)
    wall = max(reply.started + reply.seconds for reply in good) - begin
    metrics = {
        "tps": sum(_completion(reply) for reply in good) / wall,
        "ttft_s": _mean([reply.arrivals[0].at for reply in good]),
    }
    first = min(reply.started + reply.arrivals[0].at for reply in good)
    window = max(reply.started + reply.arrivals[-1].at for reply in good) - first
    spans = [reply.arrivals[-1].at - reply.arrivals[0].at for reply in good]
    if min(spans) > 0:  # what came all at once has no rate
        metrics["decode_window_tps"] = sum(map(after_first, good)) / window
        rates = [after_first(reply) / span for reply, span in zip(good, spans, strict=True)]
        metrics["stream_tps"] = _mean(rates)
    accepted = acceptance(good, growth, now)
    if accepted is not None:
        metrics["tokens_per_step"] = accepted.tokens_per_step
        if accepted.accepted_per_verified is not None:
            metrics["accepted_per_verified"] = accepted.accepted_per_verified
        if len(good) == len(replies) and "decode_window_tps" in metrics:
            step = 1000 * accepted.tokens_per_step * len(good) / metrics["decode_window_tps"]
            metrics["step_ms"] = step
            metrics["derived_tps"] = 1000 * accepted.tokens_per_step * len(good) / step
    return metrics | latencies(good)


def acceptance(
    good: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
) -> Acceptance | None:
    """What a step gave each stream: 1 token without speculation. None when there are no counters at all."""
    if not growth:
        return None
    verifies = names.total(growth, names.VERIFIES)
    if not verifies:
        return Acceptance(1.0, None)
    # The first token is the prefill's. The last step of a stream may be cut at its length: a step in 256.
    per_step = sum(map(after_first, good)) / verifies
    window = names.total(now, names.VERIFY_WINDOW) or names.total(now, names.DRAFT_TOKENS)
    return Acceptance(per_step, (per_step - 1) / (window - 1) if window > 1 else None)


def latencies(good: Sequence[Reply]) -> dict[str, float]:
    """Percentiles over all tokens of the time to the token before, in ms.

    Tokens of one event share its time evenly, as SGLang's own histogram does. Empty unless every event says
    how many tokens there are so far.
    """
    gaps: list[tuple[float, int]] = []
    for reply in good:
        for before, after in itertools.pairwise(reply.arrivals):
            if before.tokens is None or after.tokens is None:
                return {}
            if (count := after.tokens - before.tokens) > 0:
                gaps.append(((after.at - before.at) / count * 1000, count))
    gaps.sort()
    found, seen, total = {}, 0, sum(count for _, count in gaps)
    left = list(PERCENTILES.items())
    for gap, count in gaps:
        seen += count
        while left and seen >= left[0][1] * total:
            found[left.pop(0)[0]] = gap
    return found


def span(replies: Sequence[Reply], begin: float, end: float, accepted: Acceptance | None) -> dict[str, float]:
    """Speed of the streams between two moments on the monotonic clock; empty when none decoded then.

    A stream's tokens are counted at both moments on the line between the events around each: an event that
    comes after a long wait is not all of the time in which it came.
    """
    tokens = seconds = 0.0
    for reply in replies:
        at = [reply.started + arrival.at for arrival in reply.arrivals]
        counts = [arrival.tokens for arrival in reply.arrivals if arrival.tokens is not None]
        if len(counts) < max(2, len(at)):
            continue
        first, last = max(begin, at[0]), min(end, at[-1])
        if last > first:
            tokens += _between(at, counts, last) - _between(at, counts, first)
            seconds += last - first
    if tokens <= 0 or seconds <= 0:
        return {}
    rate = tokens / seconds
    found = {"stream_tps": rate}
    return found if accepted is None else found | {"step_ms": 1000 * accepted.tokens_per_step / rate}


def _between(at: Sequence[float], counts: Sequence[int], moment: float) -> float:
    index = min(max(bisect.bisect_right(at, moment), 1), len(at) - 1)
    before, after = at[index - 1], at[index]
    share = (moment - before) / (after - before) if after > before else 1.0
    return counts[index - 1] + share * (counts[index] - counts[index - 1])


def prefill(reply: Reply) -> dict[str, float]:
    """TTFT, prompt tokens over it, and the share of the prompt that the cache had."""
    if reply.error is not None or reply.usage is None:
        return {}
    ttft = reply.arrivals[0].at if reply.arrivals else reply.seconds
    return {"ttft_s": ttft, "prefill_tps": reply.usage.prompt_tokens / ttft}


def hit_rate(replies: Sequence[Reply], growth: Mapping[str, float]) -> float | None:
    """Cached prompt tokens of all, by usage, else by the counters; None when neither says."""
    usages = [reply.usage for reply in replies if reply.usage]
    cached = [usage.cached_tokens for usage in usages]
    if usages and None not in cached:
        return sum(filter(None, cached)) / sum(usage.prompt_tokens for usage in usages)
    prompt = names.total(growth, names.PROMPT_TOKENS)
    return names.total(growth, names.CACHED_TOKENS) / prompt if prompt else None


def overlap(replies: Sequence[Reply]) -> int:
    """The most streams that were between their first and their last token at one time."""
    edges = []
    for reply in replies:
        if reply.arrivals:
            edges.append((reply.started + reply.arrivals[0].at, 1))
            edges.append((reply.started + reply.arrivals[-1].at, -1))
    most = now = 0
    for _, change in sorted(edges):  # one that ends as another begins is before it
        now += change
        most = max(most, now)
    return most


def after_first(reply: Reply) -> int:
    """Tokens after the first event, which is one token where the engine does not say."""
    return _completion(reply) - (reply.arrivals[0].tokens or 1)


def _completion(reply: Reply) -> int:
    return reply.usage.completion_tokens if reply.usage else 0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
