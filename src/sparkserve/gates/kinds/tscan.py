"""tscan: sampled answers to plain questions read like text: no foreign letters, no broken ones, no loops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sparkserve.gates import text
from sparkserve.gates.asking import Asker, randomness
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context

title = "Sampled answers have words, no foreign or broken letters, and do not loop."
needs = "an instruct model"
cost_s = (25, 600)

PROMPTS = (
    "Explain to a child why the sky turns red in the evening.",
    "Write a short story about a lighthouse keeper who finds a letter.",
    "Write a Python function that merges two sorted lists, and explain it.",
    "What should one check before buying a used bicycle?",
    "Describe how bread is made, from the field to the table.",
    "Write a polite letter that asks a neighbour to turn the music down.",
    "Compare travelling by train with travelling by car.",
    "Erkläre in einigen Sätzen, wie ein Kühlschrank funktioniert.",
    "Racontez une promenade dans une forêt en automne.",
    "Give me a recipe for a soup of lentils, with amounts.",
    "Summarise what happens in the water cycle.",
    "请用中文介绍一下茶的历史。",
)
# Whole: each prompt at both temperatures alone, then thirteen at four a time, two of them greedy; 768 tokens.
TOKENS = (48, 768)
HOT, WARM, TOP_P, AT_ONCE = 1.0, 0.6, 0.95, 4
COMPANY = (4, 13)
# A small model loops by itself now and then; a broken engine does it in most answers.
LOOPS_PERCENT = 10


async def run(context: Context) -> Outcome:
    """Ask alone, then in company."""
    random, whole = randomness(context, "tscan"), not context.quick
    chosen = PROMPTS if whole else (*random.sample(PROMPTS[:-1], 3), PROMPTS[-1])
    heats = (HOT, WARM) if whole else (HOT,)
    alone = [(prompt, heat) for prompt in chosen for heat in heats]
    # Not the last: small models answer it with foreign letters now and then, so it is asked once for a heat.
    company = [(random.choice(PROMPTS[:-1]), 0.0 if n < 2 else HOT) for n in range(COMPANY[whole])]
    asker = Asker(context, len(alone) + len(company))
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(prompt: str, heat: float) -> Reply:
        options: dict[str, Any] = {"temperature": heat, "top_p": TOP_P, "seed": random.randrange(2**31)}
        async with slots:
            return await asker.chat(prompt, TOKENS[whole], **options)

    replies = [await ask(*each) for each in alone]
    replies += await asyncio.gather(*(ask(*each) for each in company))
    return judge([prompt for prompt, _ in alone + company], replies, asker.prompts)


def judge(prompts: list[str], replies: list[Reply], sent: tuple[str, ...] = ()) -> Outcome:
    """The verdict over all answers, each with its prompt."""
    bad: dict[str, list[str]] = {"errors": [], "wordless": [], "salads": [], "loops": []}
    for number, (prompt, reply) in enumerate(zip(prompts, replies, strict=True), 1):
        said = f"answer {number} ({prompt[:40]}...)"
        words = reply.reasoning + reply.text
        if reply.error is not None:
            bad["errors"].append(f"{said}: {reply.error}")
        elif text.wordless(words):
            bad["wordless"].append(f"{said}: no words in {words[:60]!r}")
        elif found := text.salad(prompt, words):
            bad["salads"].append(f"{said}: {found}")
        elif loop := text.loop(words, cut=reply.finish == "length"):
            bad["loops"].append(f"{said}: {loop.unit[:60]!r} {loop.times} times")
    limits = {"errors": 0, "wordless": 0, "salads": 0, "loops": len(replies) * LOOPS_PERCENT // 100}
    return Outcome(
        passed=all(len(bad[name]) <= limit for name, limit in limits.items()),
        summary=f"{len(replies)} answers: " + ", ".join(f"{len(each)} {name}" for name, each in bad.items()),
        measured={"answers": len(replies), **{name: len(each) for name, each in bad.items()}},
        limits=dict(limits),
        findings=tuple(line for each in bad.values() for line in each),
        prompts=sent,
        details={"answers": [reply.text[:400] for reply in replies]},
    )
