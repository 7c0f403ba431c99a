"""smoke: a known question gets the known answer, streaming and not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.engine import smoke
from sparkserve.gates.asking import Asker, usable
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.gates.contract import Context

title = "A known question gets the known answer, streamed and whole."
needs = "an instruct model"
cost_s = (2, 2)


async def run(context: Context) -> Outcome:
    """Ask what `sparkserve smoke` asks."""
    asker = Asker(context, 2)
    streamed = usable(await asker.chat(smoke.QUESTION, smoke.MAX_TOKENS, stream=True))
    whole = usable(await asker.chat(smoke.QUESTION, smoke.MAX_TOKENS))
    findings = []
    for way, reply in (("streamed", streamed), ("whole", whole)):
        if smoke.ANSWER not in reply.text:
            findings.append(f"{way}: {smoke.ANSWER} is not in {reply.text!r}")
        if reply.usage is None or reply.usage.completion_tokens < 1:
            findings.append(f"{way}: no usage counts")
    if streamed.text != whole.text:
        findings.append(f"two texts at temperature 0: streamed {streamed.text!r}, whole {whole.text!r}")
    return Outcome(
        passed=not findings,
        summary=f"{smoke.QUESTION} {whole.text}",
        measured={"first_token_s": streamed.first and round(streamed.first, 3)},
        limits={},
        findings=tuple(findings),
        prompts=asker.prompts,
    )
