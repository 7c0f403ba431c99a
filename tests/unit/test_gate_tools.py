"""tools: the smallest faults of calls that it must see, and answers that are right."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from gate_world import run
from scripted import Script

from sparkserve.client.client import Client
from sparkserve.client.reply import Reply, ToolCall
from sparkserve.gates import toolbox
from sparkserve.gates.contract import CannotRunError, Context
from sparkserve.gates.kinds import tools

NOTE = {"title": "Log", "body": toolbox.HARD, "meta": {"tags": ["a b", "ü"], "pinned": True}}
CALLS = {
    "harbour is Ulvik": (("tide_level", '{"harbour": "Ulvik", "hour": 7}'),),
    "harbours Halden and Moss.": (
        ("tide_level", '{"hour": 9, "harbour": "Moss"}'),
        ("tide_level", '{"harbour": "Halden", "hour": 9}'),
    ),
    "word between the lines": (("save_note", json.dumps(NOTE)),),
    "harbour is Voss": (("tide_level", '{"harbour": "Voss", "hour": 3}'),),
    "Say anything.": (("save_note", json.dumps(NOTE, ensure_ascii=False)),),
}
ANSWERS = {"Greet me": "Good morning!", "417 cm": "The water stands at 417 cm."}
ROUNDS = {asked.name: asked for asked in toolbox.ROUNDS}


def script(**faults: Any) -> Script:
    return Script(**{"calls": CALLS, "answers": ANSWERS, **faults})


def test_right_calls_pass() -> None:
    outcome = run("tools", script())
    assert outcome.passed, outcome.findings
    assert len(outcome.prompts) == 2 * len(toolbox.ROUNDS) + 1


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        ({"break_call": True}, "are no JSON"),
        ({"leak": "tool"}, "markup in the content"),
        ({"drop": "finish", "drop_every": 3}, "streamed"),
        ({"drop": "event", "drop_every": 5}, "streamed"),
        ({"error_every": 6}, "HTTP 500"),
    ],
)
def test_faults_of_the_engine_are_seen(faults: dict[str, Any], says: str) -> None:
    outcome = run("tools", script(**faults))
    assert not outcome.passed
    assert any(says in finding for finding in outcome.findings), outcome.findings


@pytest.mark.parametrize(
    ("text", "call", "says"),
    [
        (
            "harbour is Ulvik",
            ("tide_level", '{"harbour": "Ulvik", "hour": "7"}'),
            "not of type",
        ),
        ("harbour is Ulvik", ("tide_level", '{"harbour": "Ulvik", "hour": 8}'), "asked for"),
        ("harbour is Ulvik", ("tide_level", '{"harbour": "Ulvik"}'), "required property"),
        ("harbour is Ulvik", ("tides", "{}"), "which is no tool"),
        (
            "harbour is Ulvik",
            ("tide_level", '{"arguments": {"harbour": "Ulvik", "hour": 7}}'),
            "required property",
        ),
        (
            "word between the lines",
            ("save_note", json.dumps({**NOTE, "body": toolbox.HARD.replace(">", "&gt;")})),
            "asked for",
        ),
        (
            "word between the lines",
            ("save_note", json.dumps({**NOTE, "body": toolbox.HARD[:-1]})),
            "asked for",
        ),
        ("harbours Halden and Moss.", ("tide_level", '{"harbour": "Halden", "hour": 9}'), "calls of"),
    ],
)
def test_wrong_calls_are_seen(text: str, call: tuple[str, str], says: str) -> None:
    outcome = run("tools", script(calls={**CALLS, text: (call,)}))
    assert not outcome.passed
    assert any(says in finding for finding in outcome.findings), outcome.findings


def test_a_call_that_nobody_asked_for_and_a_result_that_is_not_used() -> None:
    outcome = run("tools", script(answers={"417 cm": "I do not know."}))
    assert not outcome.passed
    assert any(finding.startswith("result:") for finding in outcome.findings), outcome.findings


def reply(**changed: Any) -> Reply:
    call = ToolCall("a", "tide_level", '{"harbour": "Ulvik", "hour": 7}')
    return Reply(
        **{"status": 200, "error": None, "seconds": 0.1, "tool_calls": (call,), "finish": "tool_calls"}
        | changed
    )


def test_how_a_call_ends() -> None:
    single = ROUNDS["single"]
    assert toolbox.wrong(single, reply()) == []
    assert toolbox.wrong(single, reply(finish="stop")) == ["it ended by stop, not tool_calls"]
    assert toolbox.wrong(single, reply(finish="length")) == ["it ended by length, not tool_calls"]
    # The API lets a forced call end by stop.
    assert toolbox.wrong(ROUNDS["required"], reply(finish="stop")) == []


def test_two_calls_need_two_ids() -> None:
    calls = [
        ToolCall("a", "tide_level", json.dumps({"harbour": name, "hour": 9})) for name in ("Halden", "Moss")
    ]
    assert toolbox.wrong(ROUNDS["parallel"], reply(tool_calls=tuple(calls))) == ["two calls have one id"]
    calls[1] = calls[1]._replace(id="b")
    assert toolbox.wrong(ROUNDS["parallel"], reply(tool_calls=tuple(calls))) == []


@pytest.mark.parametrize(
    "text",
    [
        "<\uff5cDSML\uff5ccalls>",
        "</\uff5cDSML\uff5c invoke>",
        "<tool_call>\n{}",
        "[TOOL_CALLS] [",
        "<|python_tag|>x",
        "so</think>",
        '<function name="x">',
    ],
)
def test_markup_of_any_model_is_seen(text: str) -> None:
    assert any("markup" in words for words in toolbox.wrong(ROUNDS["none"], Reply(200, None, 0.1, text=text)))


@pytest.mark.parametrize(
    "text",
    [
        "Use a function or a tool call.",
        "if a < b > c: call(x)",
        "run.sh > out.log 2>&1",
        "<b>Hi</b> 水位",
        "",
    ],
)
def test_honest_text_is_no_markup(text: str) -> None:
    assert toolbox.wrong(ROUNDS["none"], Reply(200, None, 0.1, text=text)) == []


class WithoutParser(Client):
    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, bytes]:
        return 200, b'{"tool_call_parser": null}'


def test_an_engine_without_a_parser_cannot_be_judged() -> None:
    context = Context(WithoutParser("http://127.0.0.1:1"), "m", True, 1)
    with pytest.raises(CannotRunError, match="tool-call-parser"):
        asyncio.run(tools.run(context))
