"""Prompts of exactly n tokens, counted by the engine's own tokenizer."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench.workloads import texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sparkserve.bench.workloads.texts import Kind

_CHARACTERS = 6  # per token, more than any text of ours has
_TRIES = 40  # asks of the tokenizer for one prompt; halving 1,000,000 characters takes 20
_NEAR = 64  # characters; from here on halving is the faster way


class Fitted(NamedTuple):
    """A prompt and its tokens. `tokens` is what the tokenizer says, which may be one or two below the wish:
    where the next character makes two tokens more, no text has the number in between."""

    text: str
    tokens: int
    distinct: float

    @property
    def sha256(self) -> str:
        """Of the prompt."""
        return sha256(self.text)


def sha256(prompt: str) -> str:
    """The sha256 by which results name a prompt."""
    return hashlib.sha256(prompt.encode()).hexdigest()


async def fit(kind: Kind, tokens: int, seed: str, count: Callable[[str], Awaitable[int]]) -> Fitted:
    """The longest text of `kind` with at most `tokens` tokens by `count`.

    Its first line is of this `seed` alone, so that no prefix cache knows more than the template's tokens.
    """
    first = f"Document {hashlib.sha256(seed.encode()).hexdigest()[:16]}\n"
    whole = first + texts.text(kind, tokens * _CHARACTERS, seed)
    low, low_tokens, high = len(first), 0, len(whole) + 1
    guess = min(len(whole), len(first) + 4 * tokens)
    for _ in range(_TRIES):
        found = await count(whole[:guess])
        if found <= tokens:
            low, low_tokens = guess, found
        else:
            high = guess
        if found == tokens or high - low <= 1:
            break
        guess = (low + high) // 2
        if high - low > _NEAR:
            # By what a token weighs so far.
            weighed = low + 4 * (tokens - low_tokens) if low_tokens else round(high * tokens / found)
            guess = min(max(low + 1, weighed), high - 1)
    return Fitted(whole[:low], low_tokens, texts.distinct(whole[:low]))
