"""kld: the next token's distribution against that of a reference stack, to the first other token.

A run collects, and judges nothing: run it against the reference first (`--endpoint`), then against the
candidate with `--against`. Behind the first other token two answers have other contexts and say nothing
about each other's numbers.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sparkserve.gates import asking, divergence, panels
from sparkserve.gates.asking import Asker, usable
from sparkserve.gates.contract import CannotRunError, Outcome

if TYPE_CHECKING:
    from sparkserve.gates.contract import Context
    from sparkserve.gates.evidence import Evidence

title = "The next token's distribution is that of a reference stack."
needs = "/generate and /tokenize (SGLang), /flush_cache; --against a reference's evidence"
cost_s = (180, 2400)

MEAN_NATS = 0.035  # owners' gate; their kernels' changes measure 0.003 to 0.007
TOP = 10
ANSWER_TOKENS = (48, 256)
_MARGIN = 64  # tokens of the context that an engine keeps for itself


async def run(context: Context) -> Outcome:
    """Collect greedy answers with the likeliest tokens at each position."""
    if context.against is None and context.plan is not None and "kld" in context.plan.gates:
        raise CannotRunError("no reference: collect one from the reference stack, and name it with --against")
    whole = not context.quick
    answer = ANSWER_TOKENS[whole]
    room = await asking.context_tokens(context) - answer - _MARGIN
    sizes = {
        "long": panels.fitted(panels.LONG if whole else panels.QUICK_LONG, room),
        "short": panels.fitted(panels.SHORT if whole else panels.QUICK_SHORT, room),
    }
    asker = Asker(context, 2 * sum(map(len, sizes.values())))
    found: list[dict[str, Any]] = []
    for panel, lengths in sizes.items():
        for tokens in lengths:
            ids = await _tokens(asker, panels.text(len(found), tokens), tokens)
            await asker.flush()  # a text of the prefix cache is computed in another shape
            found.append({"panel": panel, "prompt": _digest(ids), **await _answer(asker, ids, answer)})
    positions = sum(len(item["ids"]) for item in found)
    return Outcome(
        passed=True,
        summary=f"collected {positions} positions of {len(found)} texts; by themselves they are no verdict",
        measured={"texts": len(found), "collected": positions},
        limits={},
        prompts=asker.prompts,
        details={"texts": found},
    )


async def _tokens(asker: Asker, text: str, count: int) -> list[int]:
    reply = usable(await asker.ask("/tokenize", {"prompt": text}))
    try:
        ids = [int(token) for token in reply.body["tokens"]]
    except (KeyError, TypeError, ValueError):
        raise CannotRunError("/tokenize gives no tokens") from None
    if len(ids) < count:
        raise CannotRunError(f"a text has {len(ids)} tokens, and {count} are needed")
    return ids[:count]


async def _answer(asker: Asker, ids: list[int], count: int) -> dict[str, Any]:
    """The ids of a greedy answer, and for each position the likeliest [id, log probability]."""
    body = {
        "input_ids": ids,
        "sampling_params": {"temperature": 0, "max_new_tokens": count},
        "return_logprob": True,
        "top_logprobs_num": TOP,
    }
    reply = usable(await asker.ask("/generate", body))
    try:
        meta = reply.body["meta_info"]
        chosen = [int(token[1]) for token in meta["output_token_logprobs"]]
        top = [[[int(t[1]), float(t[0])] for t in position] for position in meta["output_top_logprobs"]]
    except (KeyError, TypeError, ValueError, IndexError):
        raise CannotRunError("/generate gives no log probabilities, or some that are no numbers") from None
    if not chosen or len(chosen) != len(top):
        raise CannotRunError(f"/generate gives {len(chosen)} tokens and {len(top)} positions")
    return {"ids": chosen, "top": top}


def _digest(ids: list[int]) -> str:
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def compare(old: Evidence, new: Evidence) -> Outcome:
    """`old` is the reference. Raises `CannotRunError` when other texts were asked or tokens differ."""
    pairs = list(zip(_texts(old), _texts(new), strict=False))
    if old.quick != new.quick or [a["prompt"] for a, _ in pairs] != [b["prompt"] for b in _texts(new)]:
        raise CannotRunError("the reference was asked other texts, or has another tokenizer or context")
    measured: dict[str, float | int | str | None] = {}
    findings, every, diverged = [], [], 0
    for panel in ("long", "short"):
        values: list[float] = []
        for number, (reference, candidate) in enumerate(pairs, 1):
            if reference["panel"] != panel:
                continue
            found, at = positions(reference, candidate)
            values += found
            if at is not None:
                diverged += 1
                findings.append(
                    f"text {number} ({panel}): another token at {at + 1}, {found[-1]:.4f} nats there"
                )
        every += values
        measured |= {f"{panel}_positions": len(values), f"{panel}_mean": _mean(values)}
        measured |= {
            f"{panel}_p95": divergence.percentile(values, 0.95),
            f"{panel}_max": max(values),
        }
    mean = _mean(every)
    return Outcome(
        passed=mean <= MEAN_NATS,
        summary=f"KL {mean:.4f} nats in the mean over {len(every)} positions, "
        f"{diverged} of {len(pairs)} texts went another way",
        measured={"mean": mean, "positions": len(every), "divergences": diverged, **measured},
        limits={"mean": MEAN_NATS},
        findings=tuple(findings),
    )


def positions(reference: dict[str, Any], candidate: dict[str, Any]) -> tuple[list[float], int | None]:
    """The KL at each position up to the first other token, that one included, and its index."""
    found = []
    shorter = min(len(reference["ids"]), len(candidate["ids"]))
    for at in range(shorter):
        found.append(divergence.kl(dict(reference["top"][at]), dict(candidate["top"][at])))
        if reference["ids"][at] != candidate["ids"][at]:
            return found, at
    return found, None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _texts(evidence: Evidence) -> list[dict[str, Any]]:
    try:
        return list(evidence.details["texts"])
    except (KeyError, TypeError):
        raise CannotRunError("the reference has no texts in it") from None
