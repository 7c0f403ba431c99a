"""Mixed: streams decode, and a long prompt is admitted in their middle. What do they wait for it?

Three points from one sample: the streams' step time before, while and after the prompt is read. `during` also
has the prompt's TTFT, against that of an idle engine in `prefill`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sparkserve.bench import formulas
from sparkserve.bench.modes import long
from sparkserve.bench.task import Task
from sparkserve.bench.workloads import cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.workloads.texts import Kind
    from sparkserve.client.reply import Reply

_CASE = "prose"
_PART = 3  # the prompt is sent after this part of what the warm-up's answers took


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every size with every kind of text beside every number of streams."""
    return long.tasks(settings, asker, _point)


def _point(settings: Settings, asker: Asker, kind: Kind, size: int, streams: int) -> Task:
    prompts = long.Prompts(asker, settings, kind, size)
    drawn = cases.prompts(_CASE, settings.seed)
    phases = tuple(f"{phase}-{kind}-{size}" for phase in ("during", "before", "after"))
    pause = [0.0]  # seconds
    short: set[str] = set()

    async def send(number: int) -> list[Reply]:
        text = await prompts.draw(f"mixed-{kind}-{size}", number)
        decoding = asyncio.create_task(asker.chat(cases.wave(drawn, streams, number), settings.tokens))
        if number < 0:  # one after the other: how long do the answers take alone?
            pause[0] = max(reply.seconds for reply in await decoding) / _PART
        await asyncio.sleep(pause[0])
        read = await asker.complete([text], 1)
        return [*await decoding, *read]

    def measure(
        replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
    ) -> dict[str, dict[str, float]]:
        *decoded, read = replies
        begin, end = read.started, read.started + (read.first or read.seconds)
        spans = {phases[1]: (0.0, begin), phases[0]: (begin, end), phases[2]: (end, float("inf"))}
        per_step = formulas.acceptance(decoded, growth, now)
        found = {name: formulas.span(decoded, *span, per_step) for name, span in spans.items()}
        if "step_ms" not in found[phases[2]] or "step_ms" not in found[phases[1]]:
            short.add(f"{phases[0]}-c{streams}: answers too short to last before, during and after; --tokens")
        found[phases[0]] |= formulas.prefill(read)
        return found

    return Task(
        cases=phases,
        streams=streams,
        text=kind,
        prompts=prompts.sha256,
        send=send,
        measure=measure,
        beside=1,
        notes=lambda: [*prompts.notes(), *sorted(short)],
    )
