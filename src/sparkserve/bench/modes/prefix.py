"""Prefix: one cold prompt and two warm replays. What the cache saves, and whether it is asked at all."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from sparkserve.bench import formulas
from sparkserve.bench.modes.long import Prompts
from sparkserve.bench.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.workloads.texts import Kind
    from sparkserve.client.reply import Reply

_REPLAYS = 2


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every size with every kind of text: a point of the cold request, and one of the warm ones."""
    return [_point(settings, asker, kind, size) for size in settings.sizes for kind in settings.texts]


def _point(settings: Settings, asker: Asker, kind: Kind, size: int) -> Task:
    prompts = Prompts(asker, settings, kind, size)
    cold, warm = f"cold-{kind}-{size}", f"warm-{kind}-{size}"

    async def send(number: int) -> list[Reply]:
        text = await prompts.draw(cold, number)
        salt = uuid.uuid4().hex
        replies = []
        for _ in range(1 + _REPLAYS):
            replies += await asker.complete([text], 1, salt)
        return replies

    def measure(
        replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
    ) -> dict[str, dict[str, float]]:
        replays = [formulas.prefill(reply) for reply in replies[1:]]
        found = {"ttft_s": sum(each["ttft_s"] for each in replays) / len(replays)}
        # Counters cannot tell the replays apart; the cold one, which hits nothing, is in their prompt tokens.
        hits = formulas.hit_rate(replies[1:], {})
        if hits is None and (all_hits := formulas.hit_rate(replies, growth)) is not None:
            hits = all_hits * len(replies) / len(replays)
        return {
            cold: formulas.prefill(replies[0]),
            warm: found if hits is None else found | {"hit_rate": hits},
        }

    return Task(
        cases=(warm, cold),
        streams=1,
        text=kind,
        prompts=prompts.sha256,
        send=send,
        measure=measure,
        notes=prompts.notes,
    )
