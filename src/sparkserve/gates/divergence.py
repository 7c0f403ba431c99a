"""How far one distribution of the next token is from another, as far as their likeliest tokens tell. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEAST = 1e-9  # of a bucket: what two tails of nothing are, and float32's noise around it


def kl(reference: Mapping[int, float], candidate: Mapping[int, float]) -> float:
    """KL(reference || candidate) in nats, over the reference's tokens and one bucket for all others.

    Both map token ids to log probabilities, each its own likeliest few. A token that the candidate does not
    have gets the floor, its smallest: there it is at most that likely, so the result is a lower bound as far
    as this token goes. Never below 0; 0 for equal ones. Raises ValueError for a log probability that is none.
    """
    for values in (reference, candidate):
        if not values or not all(value <= 1e-3 for value in values.values()):  # NaN fails, too
            raise ValueError(f"no log probabilities: {dict(values)}")
    floor = min(candidate.values())
    p = _with_tail([math.exp(value) for value in reference.values()])
    q = _with_tail([math.exp(candidate.get(token, floor)) for token in reference])
    # Rounding can bring a sum of zeros to -1e-17.
    return max(0.0, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))


def _with_tail(given: Sequence[float]) -> list[float]:
    parts = [max(part, _LEAST) for part in (*given, 1 - sum(given))]
    total = sum(parts)
    return [part / total for part in parts]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
