"""batch-invariance: an answer does not depend on who else is served: same tokens, same bits of logprobs.

Only for builds that promise it: sums have one order for any number of rows, also in collectives, and
prefill chunks end at the same tokens. Before owners' builds had that, 8 of 8 prompts differed in company.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sparkserve.gates import asking, logprobs, prose
from sparkserve.gates.asking import Asker, randomness, usable
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.gates.contract import Context
    from sparkserve.gates.logprobs import Token

title = "An answer is the same to the bit alone, in company, beside a prefill, from the cache and repeated."
needs = "logprobs of chat completions, /flush_cache, a build that promises it"
cost_s = (60, 300)

PROMPTS = 8
ANSWER_TOKENS = (32, 192)
NEIGHBOUR_TOKENS = 10_000  # of the prefill beside them: more than one chunk of 8,192
_MARGIN = 512  # what templates and a word's tokens may add
_TOKENS_A_WORD = 1.5

Answers = list[tuple["Token", ...]]


async def run(context: Context) -> Outcome:
    """Ask the same eight prompts in six ways."""
    random = randomness(context, "batch-invariance")
    answer = ANSWER_TOKENS[not context.quick]
    prompts = [prose.story(random, words) for words in random.sample(range(20, 180), PROMPTS)]
    room = await asking.context_tokens(context) - answer - _MARGIN
    neighbour = " ".join(prose.document(random, int(min(NEIGHBOUR_TOKENS, room) / _TOKENS_A_WORD)))
    asker = Asker(context, 6 * PROMPTS + 1)

    async def ask(prompt: str, tokens: int = answer) -> tuple[Token, ...]:
        return logprobs.tokens(usable(await asker.chat(prompt, tokens, logprobs=True)))

    async def alone() -> Answers:
        found = []
        for prompt in prompts:
            await asker.flush()
            found.append(await ask(prompt))
        return found

    async def later(seconds: float, prompt: str, tokens: int = answer) -> tuple[Token, ...]:
        await asyncio.sleep(seconds)
        return await ask(prompt, tokens)

    loop = asyncio.get_running_loop()
    begin = loop.time()
    first = await alone()
    took = (loop.time() - begin) / PROMPTS
    ways = {"repeated": await alone(), "cached": [await ask(prompt) for prompt in prompts]}
    await asker.flush()
    ways["together"] = list(await asyncio.gather(*map(ask, prompts)))
    await asker.flush()
    # Each comes while the ones before are at different places of their answers.
    ways["staggered"] = list(
        await asyncio.gather(*(later(place * took / 4, prompt) for place, prompt in enumerate(prompts)))
    )
    await asker.flush()
    *beside, prefill = await asyncio.gather(
        *map(ask, prompts), later(took / 4, neighbour, 1), return_exceptions=True
    )
    ways["prefill"] = [_raised(each) for each in beside]
    _raised(prefill)
    return _judged(first, ways, asker)


def _raised(found: tuple[Token, ...] | BaseException) -> tuple[Token, ...]:
    if isinstance(found, BaseException):
        raise found
    return found


def _judged(first: Answers, ways: dict[str, Answers], asker: Asker) -> Outcome:
    findings, measured, gap = [], {}, 0.0
    for way, answers in ways.items():
        different = 0
        for number, (one, other) in enumerate(zip(first, answers, strict=True), 1):
            found = logprobs.difference(one, other)
            gap = max(gap, found.gap)
            if found.position is None and found.gap == 0:
                continue
            different += 1
            what = (
                f"logprobs up to {found.gap:.3g} nats apart"
                if found.position is None
                else f"another token at {found.position + 1}"
            )
            findings.append(f"prompt {number}, {way}: {what}")
        measured[way] = different
    said = ", ".join(f"{count} differ {way}" for way, count in measured.items() if count)
    return Outcome(
        passed=not findings,
        summary=f"{PROMPTS} prompts in {len(ways)} ways: {said or 'all the same bits'}",
        measured={**measured, "logprob_gap": gap},
        limits={**dict.fromkeys(ways, 0), "logprob_gap": 0.0},
        findings=tuple(findings),
        prompts=tuple(sorted(asker.prompts)),  # the order of those in company is not ours
        details={"answers": ["".join(token.text for token in answer) for answer in first]},
    )
