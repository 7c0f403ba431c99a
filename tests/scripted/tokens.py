"""Tokens: a word with its leading space, three digits, a tag, or one code point."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EOS = 2
_PARTS = re.compile(r"<\|[a-z]+\|>| ?[A-Za-z]{1,16}| ?[0-9]{1,3}|.", re.DOTALL)
_WORDS: dict[int, str] = {EOS: ""}  # a word's id is a hash, so its text is known once it was seen
_FIRST = 0x110000  # ids below are code points


def encode(text: str) -> list[int]:
    """Ids of a text. They are the same in every process."""
    return [identify(part) for part in _PARTS.findall(text)]


def pieces(text: str) -> list[str]:
    """A text's tokens."""
    return _PARTS.findall(text)


@lru_cache(maxsize=100_000)
def identify(part: str) -> int:
    """The id of one token."""
    if len(part) == 1 and ord(part) != EOS:
        return ord(part)
    # Of three bytes, a random word of a test run once had the id of " gentle". JSON has 53 bits.
    number = _FIRST + int.from_bytes(sha256(part.encode(errors="replace")).digest()[:6], "big")
    _WORDS[number] = part
    return number


def decode(ids: Sequence[int]) -> str:
    """The text of ids; one that nobody has seen is its own number."""
    return "".join(piece(number) for number in ids)


def piece(number: int) -> str:
    """The text of one id."""
    if number in _WORDS:
        return _WORDS[number]
    return chr(number) if 0 <= number < _FIRST else f" {number}"
