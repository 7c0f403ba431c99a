"""The tools that the gate `tools` offers, its questions, and what is wrong with an answer to one. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.client.reply import Reply, ToolCall


def _tool(name: str, description: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_TEXT = {"type": "string"}
TIDE = _tool(
    "tide_level",
    "The water level in a harbour, in centimetres",
    {"harbour": _TEXT, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
    ["harbour", "hour"],
)
NOTE = _tool(
    "save_note",
    "Saves a note word for word, with its tags",
    {
        "title": _TEXT,
        "body": _TEXT,
        "meta": {
            "type": "object",
            "properties": {"tags": {"type": "array", "items": _TEXT}, "pinned": {"type": "boolean"}},
            "required": ["tags", "pinned"],
            "additionalProperties": False,
        },
    },
    ["title", "body", "meta"],
)
TOOLS = [TIDE, NOTE]

_TAGS = ["a b", "ü"]

# What broke parsers: quotes, braces, a shell's redirection at the end, tags, other writings, line ends.
HARD = 'Grüße "aus" {Ulvik}: [1, 2]\nC:\\new\\temp <b>fett</b> 水位 \U0001f30a run.sh > out.log 2>&1'


def _hard(given: dict[str, Any]) -> bool:
    return given.get("body") == HARD and given.get("meta") == {"tags": _TAGS, "pinned": True}


class Round(NamedTuple):
    """One question with tools: `wants` are the calls that answer it, each with a test of its arguments."""

    name: str
    messages: list[dict[str, Any]]
    wants: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...]
    choice: Any = "auto"


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def _tide(harbour: str, hour: int) -> Callable[[dict[str, Any]], bool]:
    return lambda given: given.get("harbour") == harbour and given.get("hour") == hour


ROUNDS = (
    Round(
        "single",
        _user("Use the tool: what is the tide_level where harbour is Ulvik and hour is 7?"),
        (("tide_level", _tide("Ulvik", 7)),),
    ),
    Round(
        "parallel",
        _user(
            "Call tide_level twice in this one turn, both with hour: 9. "
            "Ask it about the harbours Halden and Moss."
        ),
        (("tide_level", _tide("Halden", 9)), ("tide_level", _tide("Moss", 9))),
    ),
    Round("none", _user("Greet me with one short sentence. Use no function for this."), ()),
    Round(
        "hard",
        _user(
            f"Call save_note once. The title is: Log. Pinned is true. The tags are {json.dumps(_TAGS)}. "
            "The body, word for "
            f"word between the lines of dashes, without them:\n---\n{HARD}\n---"
        ),
        (("save_note", _hard),),
    ),
    Round(
        "required",
        _user("Tell me about the harbour where harbour is Voss and hour is 3."),
        (("tide_level", lambda given: True),),
        "required",
    ),
    Round(
        "named",
        _user("The title is: Named. Say anything."),
        (("save_note", lambda given: True),),
        {"type": "function", "function": {"name": "save_note"}},
    ),
)

# Pieces of markup of DeepSeek, Qwen, Hermes, Mistral and Llama: none belongs into what a user reads.
_MARKUP = re.compile(
    r"DSML|\uff5c|</?\s*(?:tool_call|tool_calls|function|invoke|parameter|calls|think)\b|\[TOOL_CALLS\]|<\|python_tag\|>"
)


def wrong(asked: Round, reply: Reply) -> list[str]:
    """All that is wrong with an answer to a round."""
    if reply.error is not None:
        return [reply.error]
    found = []
    if markup := _MARKUP.search(reply.text):
        found.append(f"markup in the content: {reply.text[max(0, markup.start() - 20) :][:80]!r}")
    found += [words for call in reply.tool_calls if (words := misfit(call))]
    names = sorted(call.name for call in reply.tool_calls)
    if names != sorted(name for name, _ in asked.wants):
        said = f", and {reply.text[:60]!r}" if reply.text else ""
        found.append(f"calls of {names}, not {[name for name, _ in asked.wants]}{said}")
    elif not found:
        given = [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]
        found += [
            f"no call of {name} has the arguments asked for: {[a for n, a in given if n == name]}"
            for name, right in asked.wants
            if not any(n == name and right(arguments) for n, arguments in given)
        ]
    # A forced call is told as stop by the API's own rule; SGLang says tool_calls there, too.
    ends = {"tool_calls"} if asked.choice == "auto" else {"tool_calls", "stop"}
    if reply.tool_calls and reply.finish not in ends:
        found.append(f"it ended by {reply.finish}, not tool_calls")
    if len({call.id for call in reply.tool_calls}) < len(reply.tool_calls):
        found.append("two calls have one id")
    return found


def misfit(call: ToolCall) -> str | None:
    """What keeps a call from being one of our tools with arguments of its schema."""
    from jsonschema import Draft202012Validator

    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    if call.name not in schemas:
        return f"a call of {call.name!r}, which is no tool"
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError) as error:
        return f"arguments of {call.name} are no JSON ({error}): {call.arguments[:80]!r}"
    bad = next(iter(Draft202012Validator(schemas[call.name]).iter_errors(arguments)), None)
    return None if bad is None else f"arguments of {call.name}: {bad.json_path}: {bad.message[:120]}"


def calls(reply: Reply) -> list[tuple[str, Any]]:
    """The calls without their ids, arguments parsed where they can be: what streamed and whole must share."""
    found: list[tuple[str, Any]] = []
    for call in reply.tool_calls:
        try:
            found.append((call.name, json.loads(call.arguments)))
        except (ValueError, RecursionError):
            found.append((call.name, call.arguments))
    return found
