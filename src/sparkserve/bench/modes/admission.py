"""Admission: long documents, all at once. Do they really run together, and is none put back?

A sample passes when all are answered, all ran at one time, and the engine retracted nothing; what does not is
among the boot's notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench import counters, formulas
from sparkserve.bench.modes import long
from sparkserve.bench.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.workloads.texts import Kind
    from sparkserve.client.reply import Reply

BROKEN = "not admitted"  # how a note of what did not pass begins


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every size with every kind of text at every number of streams."""
    return long.tasks(settings, asker, _point)


def _point(settings: Settings, asker: Asker, kind: Kind, size: int, streams: int) -> Task:
    case = f"admission-{kind}-{size}"
    prompts = long.Prompts(asker, settings, kind, size)
    broken: list[str] = []

    async def send(number: int) -> list[Reply]:
        # Before any is sent: they must arrive together.
        texts = [await prompts.draw(f"{case}:{stream}", number) for stream in range(streams)]
        return await asker.complete(texts, settings.tokens)

    def measure(
        replies: Sequence[Reply], growth: Mapping[str, float], now: Mapping[str, float]
    ) -> dict[str, dict[str, float]]:
        name = f"{BROKEN}: {case}-c{streams}"
        failed = [reply.error for reply in replies if reply.error]
        if failed:
            broken.append(f"{name}: {len(failed)} of {streams} failed: {failed[0]}")
        if (together := formulas.overlap(replies)) < streams:
            broken.append(f"{name}: {together} of {streams} ran at one time")
        if retracted := counters.total(growth, counters.RETRACTED):
            broken.append(f"{name}: the engine retracted {retracted:.0f}")
        return {case: formulas.decode(replies, growth, now)}

    return Task(
        cases=(case,),
        streams=streams,
        text=kind,
        prompts=prompts.sha256,
        send=send,
        measure=measure,
        may_fail=True,
        notes=lambda: [*prompts.notes(), *broken],
    )
