"""determinism: one request at a time from an empty cache gives the same tokens and logprobs each time.

More is not promised: in company and from the prefix cache the batch has another shape, sums have another
order, and tokens may differ. Both are counted here and judged by nobody; batch-invariance judges company.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sparkserve.gates import logprobs, prose
from sparkserve.gates.asking import Asker, randomness, usable
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.gates.contract import Context
    from sparkserve.gates.logprobs import Token

title = "One request alone, from an empty cache, gives the same tokens and logprobs every time."
needs = "logprobs of chat completions, /flush_cache"
cost_s = (15, 150)

# Twenty repeats, of some 20 and 900 tokens: what the owners' runs were judged by (greedy answers that
# differed by up to 1 nat came from sums by atomics, in some of them).
REPEATS = (3, 20)
WORDS = ((12, 200), (12, 120, 650))
ANSWER_TOKENS = (12, 48)


async def run(context: Context) -> Outcome:
    """Repeat each prompt alone, then all at once, then one from the cache."""
    random = randomness(context, "determinism")
    whole = not context.quick
    repeats, answer = REPEATS[whole], ANSWER_TOKENS[whole]
    prompts = [prose.story(random, words) for words in WORDS[whole]]
    asker = Asker(context, len(prompts) * (repeats + 2))

    async def ask(prompt: str) -> tuple[Token, ...]:
        return logprobs.tokens(usable(await asker.chat(prompt, answer, logprobs=True)))

    findings, first, gap = [], [], 0.0
    for number, prompt in enumerate(prompts):
        answers = []
        for _ in range(repeats):
            await asker.flush()
            answers.append(await ask(prompt))
        first.append(answers[0])
        if words := logprobs.lost(answers[0]):
            findings.append(f"prompt {number + 1}: {words}")
        for repeat, other in enumerate(answers[1:], 2):
            found = logprobs.difference(answers[0], other)
            gap = max(gap, found.gap)
            where = f"prompt {number + 1}, repeat {repeat}"
            if found.position is not None:
                findings.append(f"{where}: other tokens from {found.position + 1} on")
            elif found.gap > 0:
                findings.append(f"{where}: the same tokens, logprobs up to {found.gap:.3g} nats apart")
    cached = [await ask(prompt) for prompt in prompts]
    await asker.flush()
    company = await asyncio.gather(*map(ask, prompts))
    return Outcome(
        passed=not findings,
        summary=f"{len(prompts)} prompts, {repeats} times each: "
        + (f"{len(findings)} wrong" if findings else "one answer each"),
        measured={
            "wrong": len(findings),
            "logprob_gap": gap,
            "different_from_cache": _different(first, cached),
            "different_in_company": _different(first, company),
        },
        limits={"wrong": 0, "logprob_gap": 0.0},
        findings=tuple(findings),
        prompts=asker.prompts,
        details={"answers": ["".join(token.text for token in answer) for answer in first]},
    )


def _different(ones: list[tuple[Token, ...]], others: list[tuple[Token, ...]]) -> int:
    """How many answers have other tokens."""
    pairs = zip(ones, others, strict=True)
    return sum(logprobs.difference(one, other).position is not None for one, other in pairs)
