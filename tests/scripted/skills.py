"""What the engine can do: the answer to a prompt, before any fault."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from scripted import structured, words

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from scripted.request import Request
    from scripted.script import Script

T = TypeVar("T")
LRU = """Here is an LRU cache with constant-time operations.

```python
from collections import OrderedDict


class LRUCache:
    def __init__(self, capacity):
        self.capacity = capacity
        self.entries = OrderedDict()

    def get(self, key):
        if key not in self.entries:
            return -1
        self.entries.move_to_end(key)
        return self.entries[key]

    def put(self, key, value):
        self.entries[key] = value
        self.entries.move_to_end(key)
        if len(self.entries) > self.capacity:
            self.entries.popitem(last=False)
```
"""


@dataclass(frozen=True)
class Answer:
    """Texts before they are tokens. `calls` are names and arguments."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    structured: bool = False


def answer(script: Script, request: Request, prompt: str, dice: random.Random) -> Answer:
    """The right answer to `prompt`, which is the request's own unless the cache mixed two up."""
    question = request.question if prompt == request.prompt else prompt
    reasoning = words.sentence(dice).strip() if request.thinking else ""
    known = _known(script, prompt)
    if known is not None:
        return Answer(known, reasoning, structured=request.schema is not None)
    last = request.messages[-1] if request.messages else {}
    if last.get("role") == "tool":
        return Answer(f"The result is {last.get('content')}.", reasoning)
    if request.tools:
        known_calls = _latest(script.calls, prompt)
        calls = known_calls or structured.calls(request.tools, request.tool_choice, question, dice)
        if calls:
            return Answer(reasoning=reasoning, calls=calls)
    if request.schema is not None:
        filled = structured.fill(request.schema, prompt, dice)
        return Answer(json.dumps(filled, ensure_ascii=False), reasoning, structured=True)
    for skill in (_needle, _repeat, _lru, _chinese):
        text = skill(script, prompt, question, dice)
        if text is not None:
            return Answer(text, reasoning)
    return Answer("".join(words.sentence(dice) for _ in range(dice.randrange(4, 9))).strip(), reasoning)


def _known(script: Script, prompt: str) -> str | None:
    if script.answer is not None and (text := script.answer(prompt)) is not None:
        return text
    return _latest(script.answers, prompt)


def _latest(table: Mapping[str, T], prompt: str) -> T | None:
    """The entry whose text comes last in the prompt."""
    latest = max(table, key=prompt.rfind, default="")
    return table[latest] if table and latest in prompt else None


def _needle(script: Script, prompt: str, question: str, dice: random.Random) -> str | None:
    asked = question[-400:].lower()
    if not re.search(r"\b(what|which|tell|reply|answer|repeat)\b", asked):
        return None
    found = None
    for match in re.finditer(
        r"\b(?:[Tt]he|[Mm]y) ([\w' -]{3,60}?) (?:is|was): ?[\"'`]?([^\n\"'`.;]+)", prompt
    ):
        found = match if match[1].lower() in asked else found
    for match in re.finditer(
        r"\b(?:[Tt]he|[Mm]y) ([\w' -]{3,60}?) (?:is|was) [\"'`]?([^\n\"'`.;:?]+)", prompt
    ):
        found = match if match[1].lower() in asked and match.end() < len(prompt) - 20 else found
    if found is None:
        return None
    if script.forget is not None and found.start() / len(prompt) > script.forget:
        return "I do not know."
    return f"The {found[1]} is {found[2].strip()}."


def _repeat(script: Script, prompt: str, question: str, dice: random.Random) -> str | None:
    found = re.search(
        r"\b(?:repeat|copy|echo)\b[^:\n]*:\s*(.+?)\s*(?:<\|assistant\|>)?$", question, re.I | re.DOTALL
    )
    return found[1] if found else None


def _lru(script: Script, prompt: str, question: str, dice: random.Random) -> str | None:
    return LRU if re.search(r"\bLRU\b", question) else None


def _chinese(script: Script, prompt: str, question: str, dice: random.Random) -> str | None:
    letters = [char for char in question if char.isalpha()]
    if 2 * sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in letters) <= len(
        letters
    ):
        return None
    return "".join(words.chinese(dice) for _ in range(dice.randrange(3, 7)))
