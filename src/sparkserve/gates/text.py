"""What is wrong with a text by its look: characters that nobody asked for, and units that repeat. Pure.

Limits are those of owners who scan their engines with them (docs/gates.md has the sources).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

FOREIGN = 5  # letters of scripts that neither the prompt nor Latin has
BROKEN = 3  # U+FFFD, control and private characters; one U+FFFD is where an answer was cut
LETTERS = 5  # that are different
UNIT, TIMES, SPAN = 200, 6, 120  # a loop: a unit of so many characters at most, so often, over so many
WORDS = 4  # with letters, in a unit that no honest answer repeats
RUN = 8  # times one token
TOKEN_PERIODS, TOKEN_TIMES, TOKEN_SPAN = range(2, 17), 4, 48

# A word of capitals in Portuguese may end in Ã, before a quotation mark: those are not among them.
_MISREAD = re.compile("Ã[\u00a0-¿ƒŠŒŽšœž]|Â[\u00a0-¿]|â€[\u00a0-¿™œ“”\u02dc¦]")
_EAST = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})
_BROKEN = frozenset({"Cc", "Co", "Cn", "Cs"})


class Loop(NamedTuple):
    """`unit` comes `times` from `start` to `end` in the text."""

    unit: str
    times: int
    start: int
    end: int


@cache
def script(char: str) -> str:
    """The writing of a letter by its Unicode name, such as LATIN or CJK; "" for what is no letter."""
    if not unicodedata.category(char).startswith("L"):
        return ""
    first = unicodedata.name(char, "UNKNOWN").replace("-", " ").split()
    # FULLWIDTH LATIN, HALFWIDTH KATAKANA, IDEOGRAPHIC ITERATION MARK, MODIFIER LETTER SMALL H
    word = first[1] if first[0] in ("FULLWIDTH", "HALFWIDTH") else first[0]
    return {"IDEOGRAPHIC": "CJK", "MODIFIER": "LATIN"}.get(word, word)


def scripts(text: str) -> Counter[str]:
    """How many letters of each writing a text has."""
    return Counter(filter(None, map(script, text)))


def salad(prompt: str, answer: str) -> str | None:
    """What is in `answer` that `prompt` did not ask for; None when it reads as it should.

    The writings of East Asia go together: an answer to a Chinese question may have Japanese in it.
    """
    asked, said = set(scripts(prompt)) | {"LATIN"}, scripts(answer)
    if asked & _EAST:
        asked |= _EAST
    # Formulas of any language have some Greek.
    if 2 * said["GREEK"] <= said.total():
        asked.add("GREEK")
    foreign = {name: count for name, count in said.items() if name not in asked}
    broken = sum(char == "\ufffd" or _is_broken(char) for char in answer) + len(misread(answer))
    if sum(foreign.values()) >= FOREIGN:
        return "letters of " + ", ".join(f"{name} ({count})" for name, count in sorted(foreign.items()))
    return f"{broken} characters that are none" if broken >= BROKEN else None


def misread(answer: str) -> list[str]:
    """What UTF-8 looks like that was read as Windows-1252: "Ã©" for "é", "â€™" for an apostrophe."""
    return _MISREAD.findall(answer)


def wordless(answer: str) -> bool:
    """Whether it says nothing: no text in any writing has so few letters."""
    return len({char for char in answer if script(char)}) < LETTERS


def _is_broken(char: str) -> bool:
    return unicodedata.category(char) in _BROKEN and char not in "\n\r\t"


def repetition(text: str) -> Loop | None:
    """The longest stretch of `text` that is one unit over and over, of the shortest unit it has."""
    found: Loop | None = None
    for period in range(1, min(UNIT, len(text) // TIMES) + 1):
        least = max(TIMES * period, SPAN) - period
        equal = 0
        for place, (one, later) in enumerate(zip(text, text[period:], strict=False)):
            equal = equal + 1 if one == later else 0
            if equal >= least and (found is None or equal + period > found.end - found.start):
                end = place + 1 + period
                start = end - equal - period
                found = Loop(text[start : start + period], (end - start) // period, start, end)
    return found


def loop(text: str, *, cut: bool) -> Loop | None:
    """A repetition that no honest answer has: running words, or any unit up to the place where it was `cut`.

    Equal rows of a table, digits and base64 of zeros repeat too, and end; a model that loops does not.
    """
    found = repetition(text)
    if found is None:
        return None
    endless = cut and len(text) - found.end < len(found.unit)
    return found if endless or _is_running(found.unit) else None


def _is_running(unit: str) -> bool:
    """What prose is made of, and rows of a table are not."""
    return not set(unit) & set("|\t") and sum(any(map(str.isalpha, word)) for word in unit.split()) >= WORDS


def run(tokens: Sequence[str]) -> str | None:
    """A run of one token; None where there is none."""
    length = 0
    for place, token in enumerate(tokens):
        length = length + 1 if place and tokens[place - 1] == token else 1
        if length >= RUN:
            return f"{token!r} {RUN} times from token {place - RUN + 2} on"
    return None


def degenerate(tokens: Sequence[str]) -> str | None:
    """A run of one token, or a short period of tokens; None for a sequence with neither."""
    if found := run(tokens):
        return found
    for period in TOKEN_PERIODS:
        equal = 0
        for place in range(period, len(tokens)):
            equal = equal + 1 if tokens[place] == tokens[place - period] else 0
            if equal + period >= max(TOKEN_SPAN, TOKEN_TIMES * period):
                unit = "".join(tokens[place - period + 1 : place + 1])
                return f"{unit!r} again and again up to token {place + 1}"
    return None
