"""What an answer says of its tokens: their texts and log probabilities (nats)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.gates.contract import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.client.reply import Reply


class Token(NamedTuple):
    """A token of an answer. `logprob` is NaN when the engine gave none: JSON has no other word for NaN.

    `top` are the likeliest tokens there, where they were asked for (`top_logprobs`).
    """

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()

    def of(self, text: str) -> float:
        """What is known of the log probability of `text` here: at most that of the last in `top`."""
        return max(
            (value for other, value in self.top if other == text),
            default=min((value for _, value in self.top), default=math.nan),
        )


class Difference(NamedTuple):
    """Two answers: the first position with other tokens (None: there is none), and the largest difference of
    log probabilities before it."""

    position: int | None
    gap: float


def tokens(reply: Reply) -> tuple[Token, ...]:
    """The tokens of a chat completion asked with `logprobs`. Raises `CannotRunError` without them."""
    try:
        content = reply.body["choices"][0]["logprobs"]["content"]
        found = tuple(
            Token(
                str(each["token"]),
                _number(each["logprob"]),
                tuple((str(top["token"]), _number(top["logprob"])) for top in each.get("top_logprobs") or ()),
            )
            for each in content
        )
    except (KeyError, IndexError, TypeError):
        raise CannotRunError("the endpoint gives no logprobs with a chat completion") from None
    if not found:
        raise CannotRunError("an answer without a token")
    return found


def lost(answer: Sequence[Token]) -> str | None:
    """What says that a step made no numbers; None when each token has one."""
    count = sum(not math.isfinite(token.logprob) for token in answer)
    return f"{count} of {len(answer)} logprobs are no numbers" if count else None


def difference(one: Sequence[Token], other: Sequence[Token]) -> Difference:
    """Compare two answers to one request. A NaN on one side only is an infinite gap."""
    gap = 0.0
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a.text != b.text:
            return Difference(position, gap)
        gap = max(gap, _gap(a.logprob, b.logprob))
    shorter = min(len(one), len(other))
    return Difference(None if len(one) == len(other) else shorter, gap)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _gap(one: float, other: float) -> float:
    if math.isnan(one) or math.isnan(other):
        return 0.0 if math.isnan(one) == math.isnan(other) else math.inf
    return 0.0 if one == other else abs(one - other)
