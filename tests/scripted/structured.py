"""JSON that fits a schema, and calls of tools, with values out of the prompt where it has them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

_FORMATS = {
    "date": "2026-01-31",
    "time": "12:30:00Z",
    "date-time": "2026-01-31T12:30:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
    "ipv4": "192.0.2.1",
}
_NAME = r"(?<=[a-z,] )[A-Z][\w-]+(?: [A-Z][\w-]+)*"  # capitals within a sentence


def fill(schema: Any, text: str, dice: random.Random) -> Any:
    """A value that fits `schema`; named fields take what `text` says of them."""
    return _value(schema if isinstance(schema, dict) else {}, schema, text, dice, "")


def _value(schema: dict[str, Any], root: Any, text: str, dice: random.Random, name: str) -> Any:
    while "$ref" in schema:
        target = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        schema = target
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        said = [
            v for v in schema["enum"] if isinstance(v, str) and re.search(rf"\b{re.escape(v)}\b", text, re.I)
        ]
        return said[0] if said else schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _value(schema[several][0], root, text, dice, name)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: _value(part, root, text, dice, field) for field, part in fields.items()}
    if kind == "array":
        parts = schema.get("prefixItems") or [schema.get("items") or {}] * max(1, schema.get("minItems", 1))
        return [_value(part, root, text, dice, name) for part in parts]
    if kind in ("integer", "number"):
        return _number(schema, kind, text, name)
    if kind == "string":
        return _string(schema, text, name)
    return True if kind == "boolean" else None


def _number(schema: dict[str, Any], kind: str, text: str, name: str) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 101) - 1)
    said = _said(name, r"-?\d+(?:\.\d+)?", text)
    value = float(said) if said else float(low)
    value = min(max(value, low), high)
    return int(value) if kind == "integer" or value == int(value) else value


def _string(schema: dict[str, Any], text: str, name: str) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    value = _said(name, r"[^\n,.;\"']+", text) or "river"
    value = value.ljust(schema.get("minLength", 0), "x")
    return value[: schema["maxLength"]] if "maxLength" in schema else value


def _said(name: str, value: str, text: str) -> str:
    words = r"[\s_]+".join(map(re.escape, re.split(r"[\s_]+", name)))
    found = (
        re.search(rf"\b{words}\b[\"'`]?(?:\s+(?:is|was|of)|\s*[:=])\s*[\"'`]?({value})", text, re.I)
        if name
        else None
    )
    return found[1].strip() if found else ""


def calls(
    tools: list[dict[str, Any]], choice: Any, question: str, dice: random.Random
) -> tuple[tuple[str, str], ...]:
    """Names and arguments (JSON) of the calls that `question` asks for: one for each of "Paris and Rome"."""
    tool = _choose(tools, choice, question)
    if tool is None:
        return ()
    numbers = re.findall(r"-?\d+(?:\.\d+)?", question)
    names = re.findall(r"\"([^\"]+)\"", question) or re.findall(_NAME, question)
    found = [_call(tool, question, dice, numbers, names)]
    if " and " in question and any(name in found[0][1] for name in re.findall(_NAME, question)):
        while names:
            found.append(_call(tool, question, dice, numbers, names))
    return tuple(found)


def _call(
    tool: dict[str, Any], question: str, dice: random.Random, numbers: list[str], names: list[str]
) -> tuple[str, str]:
    """One call; it takes what it uses from `numbers` and `names`."""
    function = tool["function"]
    schema = function.get("parameters") or {}
    filled, left = fill(schema, question, dice), len(names)
    for field, part in schema.get("properties", {}).items():
        if "enum" in part or _said(field, r"\S+", question):
            continue
        if part.get("type") in ("integer", "number") and numbers:
            number = float(numbers.pop(0))
            filled[field] = int(number) if number == int(number) else number
        elif part.get("type") == "string" and names and "format" not in part:
            filled[field] = names.pop(0)
    if len(names) == left:
        names.clear()  # this tool takes none
    return function["name"], json.dumps(filled, ensure_ascii=False)


def _choose(tools: list[dict[str, Any]], choice: Any, question: str) -> dict[str, Any] | None:
    """The tool that is asked for: the named one, or the one that shares the most words with the question."""
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        return next(tool for tool in tools if tool["function"]["name"] == name)
    asked = _words(question)
    scores = []
    for tool in tools:
        function = tool["function"]
        scores.append(len(asked & _words(f"{function['name']} {function.get('description', '')}")))
    if choice != "required" and max(scores) == 0:
        return None
    return tools[scores.index(max(scores))]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower().replace("_", " ")))
