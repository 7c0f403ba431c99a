"""tools: calls of tools come as calls, with the arguments that were asked for, whole and streamed alike.

The fault that agents meet most is markup of calls in the text with finish "stop": the agent takes the turn
as done. Texts split at every character go through SGLang's parsers in tests/engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve.gates import toolbox
from sparkserve.gates.asking import Asker, model_info
from sparkserve.gates.contract import CannotRunError, Outcome

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context

title = "Calls of tools arrive as calls: right arguments, no markup, streamed as whole, results used."
needs = "a model that calls tools, and an engine that parses its calls (SGLang: --tool-call-parser)"
cost_s = (60, 90)

TOKENS = 512  # the longest call has some 120
RESULT = "417"  # what the tool says; no model would guess it


async def run(context: Context) -> Outcome:
    """Every round whole and streamed, and one with its result fed back."""
    await _parser(context)
    asker = Asker(context, 2 * len(toolbox.ROUNDS) + 1)
    findings: list[str] = []
    answers: list[dict[str, Any]] = []

    async def ask(messages: list[dict[str, Any]], choice: Any, **options: Any) -> Reply:
        return await asker.chat(messages, TOKENS, tools=toolbox.TOOLS, tool_choice=choice, **options)

    for asked in toolbox.ROUNDS:
        whole = await ask(asked.messages, asked.choice)
        streamed = await ask(asked.messages, asked.choice, stream=True)
        answers += [_shown(asked.name, whole), _shown(asked.name, streamed)]
        bad = {way: toolbox.wrong(asked, reply) for way, reply in (("whole", whole), ("streamed", streamed))}
        findings += [f"{asked.name}, {way}: {words}" for way, found in bad.items() for words in found]
        if toolbox.calls(whole) != toolbox.calls(streamed) or whole.text != streamed.text:
            findings.append(f"{asked.name}: streamed differs from whole")
        if asked.name == "single" and whole.tool_calls:
            messages = [*asked.messages, *_fed_back(whole)]
            used = await ask(messages, "auto")
            answers.append(_shown("result", used))
            if used.error is not None or RESULT not in used.text or used.tool_calls:
                findings.append(
                    f"result: {used.error or used.text[:80]!r} has no {RESULT}, which the tool said"
                )
    return Outcome(
        passed=not findings,
        summary=f"{len(toolbox.ROUNDS)} rounds, whole and streamed: {len(findings) or 'nothing'} wrong",
        measured={"wrong": len(findings)},
        limits={"wrong": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
        details={"answers": answers},
    )


async def _parser(context: Context) -> None:
    """Raises `CannotRunError` for an SGLang without a parser: every answer would be text."""
    info = await model_info(context)
    if "tool_call_parser" in info and info["tool_call_parser"] is None:
        raise CannotRunError("the engine runs without --tool-call-parser")


def _shown(name: str, reply: Reply) -> dict[str, Any]:
    return {"round": name, "text": reply.text, "calls": toolbox.calls(reply)}


def _fed_back(reply: Reply) -> list[dict[str, Any]]:
    """The turn with the calls, and what the tool said to each."""
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]
    said = [{"role": "tool", "tool_call_id": call.id, "content": f"{RESULT} cm"} for call in reply.tool_calls]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *said]
