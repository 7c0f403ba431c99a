"""The engine's counters that the bench uses, by the names of the pinned SGLang (0.5.23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.metrics import scrape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.client.client import Client

REQUESTS = "sglang:num_requests_total"  # finished ones
ABORTED = "sglang:num_aborted_requests_total"
RUNNING = "sglang:num_running_reqs"  # set every 40 steps, and at once when the engine becomes idle
QUEUED = "sglang:num_queue_reqs"
RETRACTED = "sglang:num_retracted_requests_total"
PROMPT_TOKENS = "sglang:prompt_tokens_total"
CACHED_TOKENS = "sglang:cached_tokens_total"
VERIFIES = "sglang:spec_verify_calls_total"  # one a request and step; absent without speculation
DRAFT_TOKENS = "sglang:spec_num_draft_tokens"  # of a step, with the one that the target gives itself
VERIFY_WINDOW = "sglang:spec_cap_length"  # its mean where a cap is scheduled, else 0

# What a boot keeps of their growth.
KEPT = (
    *(REQUESTS, ABORTED, RETRACTED, PROMPT_TOKENS, "sglang:generation_tokens_total"),
    *(CACHED_TOKENS, VERIFIES),
)
_USED = tuple(name.encode() for name in (*KEPT, RUNNING, QUEUED, DRAFT_TOKENS, VERIFY_WINDOW))


async def read(client: Client) -> dict[str, float]:
    """These counters and gauges; empty when the endpoint has none of them. Raises ConnectionError."""
    status, body = await client.get("/metrics")
    # SGLang has 700 lines; parsing them all takes longer than many a sample.
    used = b"\n".join(line for line in body.split(b"\n") if line.startswith(_USED))
    try:
        return scrape.read(used.decode(errors="replace") + "\n") if status == 200 else {}
    except ValueError:
        return {}


async def running(client: Client) -> float:
    """How many requests run now. Lines are searched, not parsed: this is called while tokens arrive."""
    _, body = await client.get("/metrics")
    name = RUNNING.encode()
    lines = [line for line in body.split(b"\n") if line.startswith((name + b"{", name + b" "))]
    return sum(float(line.rpartition(b" ")[2]) for line in lines)


def total(counters: Mapping[str, float], name: str) -> float:
    """The sum of `name` over all of its labels; 0 when it is not there."""
    return sum(value for key, value in counters.items() if key.partition("{")[0] == name)
