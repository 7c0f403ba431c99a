"""prefix: answers from the prefix cache are as good as cold ones, and each warm request hits the cache.

Not the same bits: a hit computes the tail of a prompt in another shape. How far logprobs may move is measured
against how far two cold runs are apart.
"""

from __future__ import annotations

from statistics import mean, median
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.gates import logprobs, prose, text
from sparkserve.gates.asking import Asker, context_tokens, randomness, usable
from sparkserve.gates.contract import CannotRunError, Outcome

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context
    from sparkserve.gates.logprobs import Token

title = "Answers with full and partial hits of the prefix cache are as good as cold ones."
needs = "logprobs, /flush_cache, cached tokens in the usage (SGLang: --enable-cache-report)"
cost_s = (30, 420)

QUESTIONS = (2, 8)
TOKENS = (16, 128)
WORDS = (220, 20_000)  # of the document; at most a quarter of the context
TOKENS_A_WORD = 1.6  # at most
SHARED = 0.6  # of the document, by a partial hit
COLD_PERCENT = 15  # a chat template's own words may be in the cache
# The rules of the owners of four Sparks: the median drift is at most 1.5 x that of cold runs, or 0.06 nats,
# and the worst twice that; two more wrong answers than cold.
TIMES_COLD, LEAST_NATS, WORST, MORE_WRONG = 1.5, 0.06, 2.0, 2


class Arm(NamedTuple):
    """One way to ask a question, and what came."""

    kind: str  # cold, again (cold too), full, partial
    tokens: tuple[Token, ...]
    right: bool
    degenerate: str | None
    cached: int
    prompt: int


async def run(context: Context) -> Outcome:
    """For each question: cold, from the cache, cold again, and after the first part of its document alone."""
    random, whole = randomness(context, "prefix"), not context.quick
    count, answer = QUESTIONS[whole], TOKENS[whole]
    most = int(await context_tokens(context) / 4 / TOKENS_A_WORD)
    asker = Asker(context, 5 * count)
    questions: list[list[Arm]] = []

    for _ in range(count):
        records = prose.document(random, min(WORDS[whole], most))
        chosen = random.randrange(len(records))
        lines = [f"Record {number}: {record}" for number, record in enumerate(records, 1)]
        part = "\n".join(lines[: int(len(lines) * SHARED)])
        ask = "\n".join(lines) + f"\n\nQuote record {chosen + 1} word by word."

        async def arm(kind: str, prompt: str = ask, wanted: str = records[chosen]) -> Arm:
            reply = usable(await asker.chat(prompt, answer, logprobs=True, top_logprobs=5))
            return _arm(kind, reply, wanted)

        await asker.flush()
        arms = [await arm("cold"), await arm("full")]
        await asker.flush()
        arms.append(await arm("again"))
        await asker.flush()
        usable(await asker.chat(part, 1))
        arms.append(await arm("partial"))
        questions.append(arms)
    return judge(questions, asker.prompts)


def judge(questions: list[list[Arm]], sent: tuple[str, ...] = ()) -> Outcome:
    """The verdict over all questions, each with its four arms."""
    drifts: dict[str, list[float]] = {"again": [], "full": [], "partial": []}
    findings = []
    for number, arms in enumerate(questions, 1):
        cold, *others = arms
        for arm in others:
            drifts[arm.kind].append(drift(cold.tokens, arm.tokens))
        found = {arm.kind: _wrong(arm, cold) for arm in arms}
        findings += [f"question {number}, {kind}: {words}" for kind, words in found.items() if words]
    every = [arm for arms in questions for arm in arms]
    warm = drifts["full"] + drifts["partial"]
    limit = max(TIMES_COLD * median(drifts["again"]), LEAST_NATS)
    missing = {
        kind: sum(not arm.right for arm in every if arm.kind in kinds)
        for kind, kinds in (("cold", ("cold", "again")), ("warm", ("full", "partial")))
    }
    measured = {
        "median_drift": median(warm),
        "worst_drift": max(warm),
        "cold_drift": median(drifts["again"]),
        "warm_wrong": missing["warm"],
        "cold_wrong": missing["cold"],
        "wrong": len(findings),
    }
    limits = {
        "median_drift": limit,
        "worst_drift": WORST * limit,
        "warm_wrong": missing["cold"] + MORE_WRONG,
        "wrong": 0,
    }
    findings += [
        f"{name} is {measured[name]:.3g}, and at most {most:.3g}"
        for name, most in limits.items()
        if name != "wrong" and not measured[name] <= most
    ]
    return Outcome(
        passed=not findings,
        summary=f"{len(questions)} questions: drift {measured['median_drift']:.3g} nats warm, "
        f"{measured['cold_drift']:.3g} cold; {missing['warm']} quotes wrong warm, {missing['cold']} cold",
        measured=dict(measured),
        limits=dict(limits),
        findings=tuple(findings),
        prompts=sent,
        details={
            "drifts": drifts,
            "cached": [[arm.kind, arm.cached, arm.prompt] for arm in every],
            "answers": [["".join(token.text for token in arm.tokens) for arm in arms] for arms in questions],
        },
    )


def drift(cold: tuple[Token, ...], other: tuple[Token, ...]) -> float:
    """Mean distance (nats) of the logprobs of the cold answer's tokens, to the first that is another one.

    There the other's logprob of the cold token counts, which its alternatives bound from above.
    """
    gaps = []
    for one, two in zip(cold, other, strict=False):
        gaps.append(abs(one.logprob - (two.logprob if one.text == two.text else two.of(one.text))))
        if one.text != two.text:
            break
    return mean(gaps)


def _arm(kind: str, reply: Reply, wanted: str) -> Arm:
    usage = reply.usage
    if usage is None or usage.cached_tokens is None:
        raise CannotRunError("the usage does not say how many tokens were cached")
    tokens = logprobs.tokens(reply)
    return Arm(
        kind, tokens, wanted.lower() in reply.text.lower(), text.degenerate([token.text for token in tokens]),
        usage.cached_tokens, usage.prompt_tokens,
    )  # fmt: skip


def _wrong(arm: Arm, cold: Arm) -> str | None:
    """What is wrong with an arm alone; `cold` is the one of the same question."""
    part = f"{arm.cached} of {arm.prompt} tokens from the cache"
    if arm.kind in ("cold", "again"):
        return f"not cold: {part}" if arm.cached * 100 > arm.prompt * COLD_PERCENT else None
    if arm.cached * 100 <= arm.prompt * COLD_PERCENT:
        return f"no hit: {part}"
    return arm.degenerate if arm.degenerate and not cold.degenerate else None
