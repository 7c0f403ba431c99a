"""The smoke gate: one question with one right answer, streaming and not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve import api_key
from sparkserve.engine import chat
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.engine.chat import Answer

QUESTION = "What is the capital of France?"
ANSWER = "Paris"
MAX_TOKENS = 32
TIMEOUT_S = 60.0  # without a byte


def check(endpoint: str, model: str, key_file: Path | None = None) -> dict[str, str | int | float]:
    """Ask at temperature 0, streaming and not, and compare.

    Returns the answer, token counts, time to the first token (`ttft_s`, seconds, streaming) and the decode
    speed after it (`tokens_per_s`). Raises `SMOKE.ANSWER`, and `ENGINE.STATE` when nobody answers; `KEY.FILE`
    and `KEY.REFUSED` of an endpoint with keys.
    """
    ask: dict[str, Any] = {"max_tokens": MAX_TOKENS, "timeout_s": TIMEOUT_S, "key_file": key_file}
    try:
        # Streaming first: afterwards the prompt is in the prefix cache and the first token comes too fast.
        streamed = chat.stream(endpoint, model, QUESTION, **ask)
        whole = chat.complete(endpoint, model, QUESTION, **ask)
    except chat.RefusedError:
        raise api_key.refused(endpoint) from None
    except chat.UnreachableError as error:
        raise SparkserveError(
            "ENGINE.STATE",
            expected=f"an answer to {QUESTION!r} within {TIMEOUT_S:.0f} s",
            found=str(error),
            where=endpoint,
            do="See ./sparkserve status; ./sparkserve up replaces an engine that is dead or silent.",
        ) from None
    except chat.ChatError as error:
        raise _wrong(endpoint, f"an answer to {QUESTION!r}", str(error)) from None
    for way, answer in (("whole", whole), ("streamed", streamed)):
        if ANSWER not in answer.text:
            raise _wrong(endpoint, f"{ANSWER} in the {way} answer to {QUESTION!r}", repr(answer.text))
        if answer.prompt_tokens < 1 or answer.completion_tokens < 1:
            raise _wrong(endpoint, f"usage counts in the {way} answer", f"{answer.completion_tokens} tokens")
    if whole.text != streamed.text:
        raise _wrong(endpoint, "one text at temperature 0", f"{whole.text!r} and {streamed.text!r}")
    return {
        "answer": whole.text,
        "completion_tokens": whole.completion_tokens,
        "endpoint": endpoint,
        "model": model,
        "prompt_tokens": whole.prompt_tokens,
        "question": QUESTION,
        "seconds": round(whole.seconds, 3),
        "tokens_per_s": round(_speed(streamed), 1),
        "ttft_s": round(streamed.first or 0.0, 3),
    }


def _speed(answer: Answer) -> float:
    """Tokens per second after the first token; 0 when there is only one."""
    decoding = answer.seconds - (answer.first or 0.0)
    return (answer.completion_tokens - 1) / decoding if decoding > 0 else 0.0


def _wrong(endpoint: str, expected: str, found: str) -> SparkserveError:
    return SparkserveError(
        "SMOKE.ANSWER",
        expected=expected,
        found=found,
        where=endpoint,
        do="Look into ./sparkserve logs; a wrong answer of the pinned model means a broken closure.",
    )
