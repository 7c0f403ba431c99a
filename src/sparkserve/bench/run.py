"""One boot measured: warm-ups, shuffled rounds, samples of a quiet machine, until each point has enough.

For tests and campaigns, without a command line:

    async with Client(endpoint) as client:
        boot = await run.measure_boot(client, model, Settings(cases=("prose",), streams=(1, 2), tokens=8),
                                      limits=Limits(gap_s=0))
"""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench import asker, counters, modes
from sparkserve.bench.purity import QUIET, Limits, Purity
from sparkserve.bench.results import Boot, Point, Sample
from sparkserve.gates.evidence import Subject
from sparkserve.stats.stopping import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sparkserve.bench.settings import Settings
    from sparkserve.bench.task import Task
    from sparkserve.client.client import Client
    from sparkserve.client.reply import Reply


class Progress(NamedTuple):
    """Where a boot is: the point that is measured next, samples taken, and wanted as it seems now."""

    point: str
    taken: int
    wanted: int


async def measure_boot(
    client: Client,
    model: str,
    settings: Settings,
    *,
    subject: Subject | None = None,
    begun: Boot | None = None,
    number: int = 0,
    limits: Limits = QUIET,
    slow: Callable[[], str | None] = lambda: None,
    changed: Callable[[Boot], object] = lambda boot: None,
    progress: Callable[[Progress], object] = lambda where: None,
) -> Boot:
    """Measure one boot of `model`'s engine.

    `begun` is a boot that was cut short, to go on with; `number` is which boot of a run this is, for the
    order of the samples. `slow` says since its last call why the machine was not itself (throttling).
    `changed` gets the boot after each sample, so that nothing measured is lost. Raises as `Purity.take`.
    """
    boot = begun or _new(subject or Subject(endpoint=client.endpoint, model=model))
    asks = asker.Asker(client, model)
    purity = Purity(client, limits, slow)
    tasks = await modes.tasks(settings, asks)
    order = random.Random(f"{settings.seed}:{number}")  # noqa: S311 - drawn, not secret
    if settings.warm_up:
        for task in order.sample(tasks, len(tasks)):
            progress(Progress(f"{task.names[0]} (warm-up)", 0, _wanted(tasks, boot, settings)))
            await purity.warm_up(task)
    while active := [task for task in tasks if _taken(task, boot) < _enough(task, boot, settings)]:
        for task in order.sample(active, len(active)):
            taken = sum(_taken(each, boot) for each in tasks)
            progress(Progress(task.names[0], taken, _wanted(tasks, boot, settings)))
            try:
                boot = await _sample(task, boot, purity)
            finally:  # what was thrown away tells why there is no more
                notes = (*asks.notes, *purity.notes, *(note for each in tasks for note in each.notes()))
                boot = _noted(boot, begun, purity, notes)
                if boot.points or boot.discarded:
                    changed(boot)
    return boot


async def _sample(task: Task, boot: Boot, purity: Purity) -> Boot:
    number = _taken(task, boot)
    replies, growth, now = await purity.take(task, number)
    points = dict(boot.points)
    for case, metrics in task.measure(replies, growth, now).items():
        name = f"{case}-c{task.streams}"
        before = points[name].samples if name in points else ()
        prompts = points[name].prompts if name in points else ()
        sample = Sample(
            round=number,
            metrics=dict(metrics),
            completion_tokens=sum(reply.usage.completion_tokens for reply in replies if reply.usage),
            prompt_tokens=sum(reply.usage.prompt_tokens for reply in replies if reply.usage),
            outputs=tuple(_digest(reply) for reply in replies),
            failed=sum(1 for reply in replies if reply.error),
        )
        points[name] = Point(
            case=case,
            streams=task.streams,
            text=task.text,
            prompts=tuple(dict.fromkeys((*prompts, *task.prompts))),
            samples=(*before, sample),
        )
    return boot.model_copy(update={"points": points})


def _noted(boot: Boot, begun: Boot | None, purity: Purity, notes: Sequence[str]) -> Boot:
    """`boot` with what is known beside its samples, and what it `begun` with."""
    kept: Mapping[str, float] = {
        name: value for name, value in purity.growth.items() if name.partition("{")[0] in counters.KEPT
    }
    earlier = begun.counters if begun else {}
    return boot.model_copy(
        update={
            "discarded": (*(begun.discarded if begun else ()), *purity.discarded),
            "counters": {
                name: kept.get(name, 0.0) + earlier.get(name, 0.0) for name in sorted({*kept, *earlier})
            },
            "notes": tuple(dict.fromkeys((*(begun.notes if begun else ()), *notes))),
        }
    )


def _new(subject: Subject) -> Boot:
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    # Another plan's group counts its boots from 1 too.
    name = f"{(subject.fleet_id or '')[:12]}-{subject.boot}" if subject.boot else started
    return Boot(id=name, started=started, subject=subject, points={})


def _taken(task: Task, boot: Boot) -> int:
    point = boot.points.get(task.names[0])
    return len(point.samples) if point else 0


def _enough(task: Task, boot: Boot, settings: Settings) -> int:
    """How many samples the point of `task` is to have, by those that it has."""
    point = boot.points.get(task.names[0])
    samples = point.samples if point else ()
    metric = settings.metric
    values = [sample.metrics[metric] for sample in samples if metric in sample.metrics]
    if len(values) < len(samples):  # the engine counts no steps
        values = [sample.metrics["tps"] for sample in samples if "tps" in sample.metrics]
    least = max(settings.min, task.least)
    if least >= settings.max:
        return least
    return len(values) + Rule(settings.precision, least, settings.max).more(values)


def _wanted(tasks: Sequence[Task], boot: Boot, settings: Settings) -> int:
    return sum(_enough(task, boot, settings) for task in tasks)


def _digest(reply: Reply) -> str:
    return hashlib.sha256((reply.reasoning + reply.text).encode()).hexdigest()[:16]
