"""Prompts of exactly n tokens, counted by the engine's own tokenizer."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench.workloads import texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sparkserve.bench.workloads.texts import Kind

_CHARACTERS = 6  # per token, at first; indented source can have more
_TRIES = 50  # asks of the tokenizer; halving 6,000,000 characters takes 23, and every second try halves


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
    characters = tokens * _CHARACTERS
    whole = first + texts.text(kind, characters, seed)
    while (most := await count(whole)) < tokens and len(whole) >= characters:
        characters *= 2
        whole = first + texts.text(kind, characters, seed)
    low, low_tokens, high, high_tokens = len(first), 0, len(whole), most
    if most <= tokens:
        return Fitted(whole, most, texts.distinct(whole))
    for number in range(_TRIES):
        # By what the text between weighs, which is near at once, and by halves, which never takes long.
        share = 0.5 if number % 2 else (tokens - low_tokens) / (high_tokens - low_tokens)
        guess = min(max(low + 1, low + round(share * (high - low))), high - 1)
        found = await count(whole[:guess])
        if found <= tokens:
            low, low_tokens = guess, found
        else:
            high, high_tokens = guess, found
        if low_tokens == tokens or high - low <= 1:
            break
    return Fitted(whole[:low], low_tokens, texts.distinct(whole[:low]))
