"""Prefill: one cold prompt, one token out. Each sample has a text of its own."""

from __future__ import annotations

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


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every size with every kind of text."""
    return [_point(settings, asker, kind, size) for size in settings.sizes for kind in settings.texts]


def _point(settings: Settings, asker: Asker, kind: Kind, size: int) -> Task:
    case = f"{kind}-{size}"
    prompts = Prompts(asker, settings, kind, size)

    async def send(number: int) -> list[Reply]:
        text = await prompts.draw(case, number)
        return await asker.complete([text], 1)

    def measure(
        replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
    ) -> dict[str, dict[str, float]]:
        metrics = formulas.prefill(replies[0])
        hits = formulas.hit_rate(replies, growth)
        return {case: metrics if hits is None else metrics | {"hit_rate": hits}}

    return Task(
        cases=(case,),
        streams=1,
        text=kind,
        prompts=prompts.sha256,
        send=send,
        measure=measure,
        notes=prompts.notes,
    )
