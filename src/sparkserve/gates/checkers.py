"""Whether an answer of a model is right: lenient about the markdown around it, strict about what it says."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sparkserve.gates import answers, sandbox

if TYPE_CHECKING:
    from sparkserve.gates.tasks import Task

# Words that half of all sentences of a language have, and the two others have not.
_COMMON = {
    "en": {"the", "and", "of", "to", "is", "it", "that", "with", "for", "was", "are", "by", "they"},
    "de": {"der", "die", "und", "das", "ist", "nicht", "mit", "ein", "eine", "auf", "wird", "den"},
    "es": {"el", "la", "de", "que", "y", "los", "del", "las", "una", "por", "con", "su", "como"},
}  # fmt: skip
_INPUT_SEED = 0  # one for all runs: a verdict must not flip because of other inputs


async def check(task: Task, text: str, seed: int = _INPUT_SEED) -> str | None:
    """Why `text` is no right answer to `task`; None when it is one.

    `seed` is of the random inputs of code tasks. Raises `CannotRunError` where code cannot run.
    """
    text = answers.said(text)
    if not text:
        return "an empty answer"
    if task.kind == "code":
        return await _code(task, text, seed)
    return _CHECKS[task.kind](task, text)


async def _code(task: Task, text: str, seed: int) -> str | None:
    source = code_of(text, task.function)
    if source is None:
        return f"no code that defines {task.function}"
    cases = json.loads(task.cases)
    [drawn] = await sandbox.call(task.inputs, "inputs", [[seed]])
    inputs = [case[0] for case in cases] + drawn
    expected = [case[1] for case in cases]
    reference = code_of(task.reference, task.function)
    assert reference is not None  # noqa: S101 - a unit test runs every reference
    expected += await sandbox.call(reference, task.function, drawn)
    try:
        found = await sandbox.call(source, task.function, inputs)
    except sandbox.CodeError as error:
        return str(error)
    for arguments, right, value in zip(inputs, expected, found, strict=True):
        if not same(value, right):
            given = json.dumps(arguments, ensure_ascii=False)[1:-1]
            return f"{task.function}({given[:200]}) gave {_short(value)}, not {_short(right)}"
    return None


def code_of(text: str, function: str) -> str | None:
    """The last code block that defines `function`, or the whole text when it has no fence."""
    defines = re.compile(rf"^def {function}\b", re.MULTILINE)
    candidates = answers.blocks(text) or [text]
    return next((block for block in reversed(candidates) if defines.search(block)), None)


def same(one: Any, other: Any) -> bool:
    """JSON values that are equal and of one type: true is not 1, and 1.0 is not 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _number(task: Task, text: str) -> str | None:
    line = answers.last_line(text)
    if line is None:
        return "no line that begins with Answer:"
    found = answers.number(line, task.units)
    right = answers.number(task.value)
    return None if found is not None and found == right else f"{line[:100]!r} is not {task.value}"


def _numbers(task: Task, text: str) -> str | None:
    line = answers.last_line(text)
    if line is None:
        return "no line that begins with Answer:"
    plain = line.replace("\u2212", "-")
    rest = re.sub(r"-?\d+|\band\b|[\s,;()\[\].$]", "", plain)
    right = re.findall(r"-?\d+", task.value)
    return (
        None if not rest and re.findall(r"-?\d+", plain) == right else f"{line[:100]!r} is not {task.value}"
    )


def _word(task: Task, text: str) -> str | None:
    line = answers.last_line(text)
    if line is None:
        return "no line that begins with Answer:"
    return (
        None if answers.normal(line) == answers.normal(task.value) else f"{line[:100]!r} is not {task.value}"
    )


def _clock(task: Task, text: str) -> str | None:
    line = answers.last_line(text)
    if line is None:
        return "no line that begins with Answer:"
    found = re.fullmatch(r"(\d{1,2}):(\d\d)\s*([ap])?\.?m?\.?", line.strip(), re.IGNORECASE)
    right = task.value.split(":")
    if found:
        hour = int(found[1]) % 12 + (12 if found[3] in "pP" else 0) if found[3] else int(found[1])
        if (hour, int(found[2])) == (int(right[0]), int(right[1])):
            return None
    return f"{line[:100]!r} is not {task.value}"


def _json(task: Task, text: str) -> str | None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    try:
        value = json.loads(answers.unfenced(text), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        return f"not one JSON value: {error}"
    return None if same(value, json.loads(task.value)) else f"another value: {_short(value)}"


def _lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in answers.unfenced(text).splitlines() if line.strip()]


def _lines(task: Task, text: str) -> str | None:
    found, right = _lines_of(text), task.value.splitlines()
    for place, (line, wanted) in enumerate(zip(found, right, strict=False), 1):
        if line.strip() != wanted:
            return f"line {place} is {line[:100]!r}, not {wanted!r}"
    return None if len(found) == len(right) else f"{len(found)} lines, not {len(right)}"


def _pattern(task: Task, text: str) -> str | None:
    found = _lines_of(text)
    for place, line in enumerate(found, 1):
        if not re.fullmatch(task.value, line.strip()):
            return f"line {place} has another form: {line[:100]!r}"
    return None if len(found) == task.count else f"{len(found)} lines, not {task.count}"


def _cells(task: Task, text: str) -> str | None:
    rows = [[cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in _lines_of(text)]
    if len(rows) < 2 or not all(re.fullmatch(":?-+:?", cell) for cell in rows.pop(1)):
        return "no table: its second line has no dashes"
    right = [[cell.strip() for cell in line.split("|")] for line in task.value.splitlines()]
    return None if rows == right else f"other cells: {_short(rows)}"


def _prose(task: Task, text: str) -> str | None:
    plain = re.sub(r"[*#`]", "", answers.unfenced(text))
    words = answers.words(plain)
    low, high = task.words
    if not low <= len(words) <= high:
        return f"{len(words)} words, not {low} to {high}"
    missing = [word for word in task.must if not _has(plain, word)]
    present = [word for word in task.never if _has(plain, word)]
    if missing or present:
        return f"without {missing}, with {present}"
    paragraphs = len(re.split(r"\n\s*\n", plain.strip()))
    if task.paragraphs and paragraphs != task.paragraphs:
        return f"{paragraphs} paragraphs, not {task.paragraphs}"
    hits = {name: sum(word.casefold() in common for word in words) for name, common in _COMMON.items()}
    language = max(hits, key=lambda name: hits[name])
    # A tenth of such words: a sixth to a third of ordinary text are these.
    if task.language and (language != task.language or hits[language] * 10 < len(words)):
        return f"not in the language asked for ({task.language}): {hits}"
    return None


def _has(text: str, phrase: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]


_CHECKS = {
    "number": _number, "numbers": _numbers, "word": _word, "clock": _clock, "json": _json,
    "lines": _lines, "pattern": _pattern, "cells": _cells, "prose": _prose,
}  # fmt: skip
