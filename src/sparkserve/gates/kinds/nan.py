"""nan: numbers stay numbers when a prefill joins running decodes, and odd inputs end nothing.

The mix is what broke engines: a prefill of more than 128 tokens admitted into a step of eight streams.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sparkserve.engine import smoke
from sparkserve.gates import logprobs, prose, text
from sparkserve.gates.asking import Asker, randomness
from sparkserve.gates.contract import CannotRunError, Outcome

if TYPE_CHECKING:
    import random

    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context

title = (
    "Logprobs stay finite when prefills join running decodes; odd inputs get an answer or a clean refusal."
)
needs = "logprobs of chat completions"
cost_s = (20, 60)

ROUNDS, STREAMS = 3, 8
TOKENS = (12, 64)
PREFILL_WORDS = (150, 400)  # more than 128 tokens


async def run(context: Context) -> Outcome:
    """Three rounds of the mix, then each odd input alone, then a question with a known answer."""
    random, whole = randomness(context, "nan"), not context.quick
    poison = poisons(random)
    asker = Asker(context, ROUNDS * (STREAMS + 1) + len(poison) + 2)
    findings, mixed = [], 0
    # In company an answer takes longer than alone, so a part of this is in its middle on any engine.
    alone = await asker.chat(prose.story(random, 12), TOKENS[whole])
    for number in range(1, ROUNDS + 1):
        decoding = [
            asyncio.ensure_future(asker.chat(prose.story(random, 12), TOKENS[whole], logprobs=True))
            for _ in range(STREAMS)
        ]
        await asyncio.sleep(alone.seconds * number / (ROUNDS + 1))
        joined = await asker.chat(prose.story(random, PREFILL_WORDS[whole]), TOKENS[whole], logprobs=True)
        replies = await asyncio.gather(*decoding)
        mixed += any(joined.started < reply.started + reply.seconds for reply in replies)
        for stream, reply in enumerate([*replies, joined], 1):
            if words := wrong(reply):
                findings.append(f"round {number}, stream {stream}: {words}")
    if not mixed and not findings:
        raise CannotRunError("all decodes ended before the prefill came: nothing was mixed")
    for name, prompt in poison.items():
        reply = await asker.chat(prompt, TOKENS[whole])
        if reply.error is not None and not 400 <= reply.status < 500:
            findings.append(f"{name}: {reply.error}")
    after = await asker.chat(smoke.QUESTION, smoke.MAX_TOKENS)
    if after.error is not None or text.run(list(after.text)):
        findings.append(f"afterwards: {after.error or after.text!r}")
    return Outcome(
        passed=not findings,
        summary=f"{ROUNDS} rounds, {mixed} of them mixed, and {len(poison)} odd inputs: "
        f"{len(findings) or 'nothing'} wrong",
        measured={"wrong": len(findings), "mixed_rounds": mixed},
        limits={"wrong": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
    )


def wrong(reply: Reply) -> str | None:
    """What says that a step made no numbers; None when all is well."""
    if reply.error is not None:
        return reply.error
    tokens = logprobs.tokens(reply)
    return logprobs.lost(tokens) or text.run([token.text for token in tokens])


def poisons(random: random.Random) -> dict[str, str]:
    """Prompts that nobody would write and somebody sends."""
    special = "<|im_start|><|im_end|><|endoftext|><\uff5cbegin\u2581of\u2581sentence\uff5c>"
    return {
        "empty": "",
        "one space": " ",
        "one long word": "".join(random.choices("abcdefghij", k=2000)),
        "special tokens": special * 8,
        "broken characters": "\ufffd\x00\x01\u200b" * 16,
    }
