"""needle: sentences planted at three depths of a long text are found, up to nearly the model's context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.gates import prose
from sparkserve.gates.asking import Asker, context_tokens, randomness
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    import random

    from sparkserve.gates.contract import Context

title = "Sentences planted at three depths of texts up to the model's context are found."
needs = "a model that finds them in short texts too; max_model_len in /v1/models"
cost_s = (15, 240)

DEPTHS = (0.1, 0.5, 0.9)
WORDS, STEP = 600, 6  # the first text, and how much longer each next one is
TOKENS_A_WORD = 1.6  # at most: 1.33 for SmolLM2, more with a chat template and short texts
FILLED = 0.9  # of the context, by the last text
ANSWER_TOKENS = 48

_FACTS = (
    "password of the harbour office", "name of the stolen racehorse", "first word of the old charter",
    "call sign of the mountain station", "name of the sunken ship", "winning entry of the contest",
    "motto above the school door", "label on the hidden cabinet",
)  # fmt: skip
_ONES = ("amber", "silver", "scarlet", "golden", "crimson", "ivory", "copper", "velvet", "cobalt", "marble")
_TWOS = ("falcon", "otter", "tiger", "heron", "badger", "lynx", "raven", "walrus", "beaver", "panther")


async def run(context: Context) -> Outcome:
    """Ask for each planted sentence of each text."""
    random = randomness(context, "needle")
    ladder = lengths(await context_tokens(context), quick=context.quick)
    asker = Asker(context, len(ladder) * len(DEPTHS))
    findings, reached, tokens = [], 0, 0
    for words in ladder:
        text, planted = plant(random, words)
        missed = 0
        for depth, (fact, phrase) in zip(DEPTHS, planted.items(), strict=True):
            question = f"What is the {fact}? Answer with it alone."
            reply = await asker.chat(f"Read this text.\n\n{text}\n\n{question}", ANSWER_TOKENS)
            tokens = reply.usage.prompt_tokens if reply.usage else tokens
            if reply.error is not None or phrase not in reply.text.lower():
                missed += 1
                said = repr(reply.text[:80]) if reply.error is None else reply.error
                findings.append(f"{tokens} tokens, depth {depth}: the {fact} is {phrase}, not {said}")
        reached = reached if missed else tokens
    return Outcome(
        passed=not findings,
        summary=f"{len(ladder) * len(DEPTHS) - len(findings)} of {len(ladder) * len(DEPTHS)} found, "
        f"the longest text has {tokens} tokens",
        measured={"missed": len(findings), "tokens": tokens, "tokens_all_found": reached},
        limits={"missed": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
    )


def lengths(context: int, *, quick: bool) -> list[int]:
    """The words of each text, shortest first. The last fills the context as far as it is sure to fit."""
    most = int(FILLED * context / TOKENS_A_WORD)
    ladder = [WORDS]
    while not quick and ladder[-1] * STEP < most:
        ladder.append(ladder[-1] * STEP)
    return [min(WORDS, most)] if quick else [*(words for words in ladder if words < most), most]


def plant(random: random.Random, words: int) -> tuple[str, dict[str, str]]:
    """A text with a sentence at each depth; by fact what it says, in the order of `DEPTHS`."""
    sentences = prose.document(random, words)
    phrases = (
        f"{one} {two}" for one, two in zip(random.sample(_ONES, 3), random.sample(_TWOS, 3), strict=True)
    )
    planted = dict(zip(random.sample(_FACTS, len(DEPTHS)), phrases, strict=True))
    count = len(sentences)
    # From the end, so that places before it stay where they are.
    for depth, (fact, phrase) in reversed(list(zip(DEPTHS, planted.items(), strict=True))):
        sentences.insert(int(count * depth), f"The {fact} is {phrase}.")
    return " ".join(sentences), planted
