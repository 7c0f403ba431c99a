"""Decode: waves of equal length at temperature 0, each stream with a prompt of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench import formulas
from sparkserve.bench.task import Task
from sparkserve.bench.workloads import cases
from sparkserve.bench.workloads.fit import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.client.reply import Reply


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every case at every number of streams."""
    return [point(settings, asker, case, streams) for case in settings.cases for streams in settings.streams]


def point(settings: Settings, asker: Asker, case: str, streams: int, *, sampled: bool = False) -> Task:
    """One case at one number of streams; `sampled` at temperature 1, each request with a seed of its own."""
    name = f"sampled-{case}" if sampled else case
    drawn = cases.prompts(case, settings.seed)
    short: set[str] = set()

    async def send(number: int) -> list[Reply]:
        prompts = cases.wave(drawn, streams, number)
        seeds = [1000 + number * streams + stream for stream in range(streams)] if sampled else ()
        replies = await asker.chat(prompts, settings.tokens, seeds)
        if any(reply.usage and reply.usage.completion_tokens != settings.tokens for reply in replies):
            short.add(f"{name}-c{streams}: answers that have not {settings.tokens} tokens")
        return replies

    def measure(
        replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
    ) -> dict[str, dict[str, float]]:
        metrics = formulas.decode(replies, growth, now)
        hits = formulas.hit_rate(replies, growth)
        return {name: metrics if hits is None else metrics | {"hit_rate": hits}}

    return Task(
        cases=(name,),
        streams=streams,
        text="real",
        prompts=[sha256(prompt) for prompt in drawn],
        send=send,
        measure=measure,
        least=-(-settings.requests // streams) if sampled else 1,
        notes=lambda: sorted(short),
    )
