"""Changes in words: lines for people, a summary, and a tree."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from sparkserve.drift.changes import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.tree import Tree

    from sparkserve.drift.compare import Found

SHOWN = 200  # letters of a value
_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")


def lines(found: Sequence[Found]) -> Iterator[str]:
    """All of it: a line a section, and below it one for each change, with the lines of texts that changed."""
    for title, each in _sections(found):
        yield title
        for one in each:
            yield f"  {sentence(one)}"
            yield from (f"    {line}" for line in _text_lines(one))


def summary(found: Sequence[Found]) -> list[tuple[str, str, str]]:
    """Section, number of changes, and the first of their names."""
    return [(title, str(len(each)), _some([one.name for one in each])) for title, each in _sections(found)]


def tree(found: Sequence[Found], title: str) -> Tree:
    """The same as a tree of sections."""
    from rich.text import Text
    from rich.tree import Tree

    top = Tree(Text(title, style="bold"), highlight=False)
    for section, each in _sections(found):
        branch = top.add(Text(f"{section} ({len(each)})", style="bold"))
        for one in each:
            leaf = branch.add(Text(sentence(one)))
            for line in _text_lines(one):
                leaf.add(Text(line, style="green" if line.startswith("+") else "red"))
    return top


def sentence(one: Found) -> str:
    """A change in one line."""
    _, before, after = one.change
    nodes = f" ({', '.join(one.nodes)})" if one.nodes else ""
    if before is ABSENT:
        return f"{one.name}: new{_value(after)}{nodes}"
    if after is ABSENT:
        return f"{one.name}: gone{_value(before)}{nodes}"
    if _is_text(before) or _is_text(after):
        texts = _text_lines(one)
        gone = sum(line.startswith("-") for line in texts)
        return f"{one.name}: {_lines(gone)} gone, {_lines(len(texts) - gone)} new{nodes}"
    return f"{one.name}: {_short(before)} → {_short(after)}{nodes}"


def _value(value: Any) -> str:
    """What is said of a value that is new or gone."""
    return "" if value is True or value in ([], {}, "") else f", {_short(value)}"


def _short(value: Any) -> str:
    if _is_text(value):
        return f"{_lines(len(value.splitlines()))} of text"
    if value is None or value in ([], {}, ""):
        text = "none"
    elif isinstance(value, dict):
        text = ", ".join(_inner(value))
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = " ".join(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = _DIGEST.sub(r"\1…", text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _inner(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in sorted(values.items()):
        if isinstance(value, dict) and value:
            yield from (f"{name} {text}" for text in _inner(value))
        else:
            yield f"{name} {_short(value)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _text_lines(one: Found) -> list[str]:
    """The lines that differ of a text that both sides have."""
    _, before, after = one.change
    if not (isinstance(before, str) and isinstance(after, str) and (_is_text(before) or _is_text(after))):
        return []
    # With the ends of lines: that the last one has none is a difference too.
    compared = difflib.unified_diff(before.splitlines(True), after.splitlines(True), n=0)
    return [f"{line[0]} {line[1:].rstrip()}" for line in list(compared)[2:] if not line.startswith("@@")]


def _sections(found: Sequence[Found]) -> list[tuple[str, list[Found]]]:
    titles = dict.fromkeys(one.section for one in found)
    return [(title, [one for one in found if one.section == title]) for title in titles]


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
