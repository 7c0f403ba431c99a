"""Reads what a model wrote: the part that answers, without thinking and markdown, and numbers in any form."""

from __future__ import annotations

import re
from fractions import Fraction

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)\n?```", re.DOTALL)
_ANSWER = re.compile(r"^\W*(?:final\s+)?answer\s*[:=\uff1a]\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_THOUSANDS = re.compile(r"(?<![\d.])(\d{1,3})((?:[, _\u00a0\u202f]\d{3})+)(?!\d)")
_PLAIN = r"-?\d+(?:\.\d+)?"
_NUMBER = re.compile(
    rf"(?P<whole>-?\d+) (?P<up>\d+)/(?P<down>\d+)"
    rf"|(?P<top>{_PLAIN}) ?/ ?(?P<bottom>{_PLAIN})"
    rf"|(?P<mantissa>{_PLAIN})(?:e\+?| ?[*\u00d7x] ?10\^)(?P<power>-?\d{{1,2}})"
    rf"|(?P<plain>{_PLAIN})",
    re.IGNORECASE,
)


def said(text: str) -> str:
    """The text after the thinking, where an engine without a reasoning parser left it in."""
    return text.rpartition("</think>")[2].strip()


def unfenced(text: str) -> str:
    """The inside of the fence that a whole text is in; the text itself when it is in none."""
    found = _FENCE.fullmatch(text.strip())
    return found[1] if found else text.strip().strip("`")


def blocks(text: str) -> list[str]:
    """The insides of all fences."""
    return [found[1] for found in _FENCE.finditer(text)]


def last_line(text: str) -> str | None:
    """What stands after the last "Answer:" at the begin of a line; None without one."""
    found = _ANSWER.findall(re.sub(r"[*`#>]", "", text))
    return found[-1] if found else None


def number(text: str, units: tuple[str, ...] = ()) -> Fraction | None:
    r"""The exact value of `text`, a number with or without one of `units`; None for anything else.

    Reads 1,234.5 and 1 234.5, 117,50, 3/8, 5 1/7, 2.5e3, 3 x 10^4, \frac{3}{8}, \boxed{7}, $7 and x = 7.
    """
    text = re.sub(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\(?:boxed|text|mathrm)\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"\\[(),;!%\[\] ]", lambda found: "%" if found[0] == "\\%" else " ", text)
    text = text.replace("\u2212", "-").replace("\\times", "\u00d7").replace("$", "").replace("10^{", "10^")
    text = text.rpartition("=")[2].strip().strip("}").strip()
    if text.startswith(("\u20ac", "\u00a3")) and text[0] in units:
        text = text[1:].strip()
    text = _THOUSANDS.sub(lambda found: found[1] + re.sub(r"\D", "", found[2]), text)
    text = re.sub(r"^(-?\d+),(\d{1,2})(?!\d)", r"\1.\2", text)
    found = _NUMBER.match(text)
    if not found or not _is_unit(text[found.end() :], units):
        return None
    part = found.groupdict()
    try:
        if part["whole"]:
            sign = -1 if part["whole"].startswith("-") else 1
            return Fraction(part["whole"]) + sign * Fraction(int(part["up"]), int(part["down"]))
        if part["top"]:
            return Fraction(part["top"]) / Fraction(part["bottom"])
        if part["mantissa"]:
            return Fraction(part["mantissa"]) * Fraction(10) ** int(part["power"])
        return Fraction(part["plain"])
    except ZeroDivisionError:
        return None


def _is_unit(rest: str, units: tuple[str, ...]) -> bool:
    rest = rest.strip().removesuffix(".").strip().casefold()
    return not rest or rest in units


def words(text: str) -> list[str]:
    """The words of running text, numbers among them."""
    return re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", text)


def normal(text: str) -> str:
    """A short answer without case, punctuation, articles and the word and."""
    found = [word.casefold() for word in words(text)]
    short = [word for word in found if word not in ("the", "a", "an", "and")]
    return " ".join(short or found)
