"""Log-probabilities that look real: a pure function of the last tokens and the one that follows them."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING

from scripted.tokens import identify
from scripted.words import ADJECTIVES, LINKS, NOUNS, VERBS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

WINDOW = 8
CANDIDATES = 20
_WORDS = [identify(f" {word}") for word in (*NOUNS, *VERBS, *ADJECTIVES, *LINKS)]
_TAIL = 0.02  # of the mass is with tokens that are no candidates


def candidates(
    before: Sequence[int], token: int, noise: random.Random | None = None, drift: float = 0.0
) -> list[tuple[float, int]]:
    """(logprob, id) of the likeliest tokens after `before`, where `token` is the likeliest of the model.

    With `noise`, each logit has moved by `drift` x z before that, so that another may be first.
    """
    digest = blake2b(repr((*before[-WINDOW:], token)).encode(), digest_size=32).digest()
    place = int.from_bytes(digest[:2], "big")
    logits = {token: 0.0}
    logit = 1.8 * math.log((digest[2] + 0.5) / 256)  # the lead of the first: 1.8 nats in the mean
    for byte in digest[3 : 2 + CANDIDATES]:
        place += 1 + byte % 5
        other = _WORDS[place % len(_WORDS)]
        logits.setdefault(other, logit)
        logit += 0.7 * math.log((byte + 0.5) / 256)
    if noise is not None:
        logits = {number: value + drift * noise.gauss(0, 1) for number, value in logits.items()}
    total = math.log(sum(map(math.exp, logits.values())) / (1 - _TAIL))
    return sorted(((value - total, number) for number, value in logits.items()), reverse=True)


def of_prompt(
    ids: Sequence[int], start: int, top: int
) -> tuple[list[float | None], list[list[tuple[float, int]]]]:
    """Of each prompt token from `start` on; the first has none."""
    values: list[float | None] = [None]
    tops: list[list[tuple[float, int]]] = [[]]
    for position in range(start + 1, len(ids)):
        likely = candidates(ids[max(0, position - WINDOW) : position], ids[position])
        values.append(likely[0][0])
        tops.append(likely[:top])
    return values, tops
