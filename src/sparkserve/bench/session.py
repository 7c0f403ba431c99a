"""A run: one or several boots into one result file, which is whole after every sample."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sparkserve.bench import machine, run, watch
from sparkserve.bench.arms import CUT, is_cut
from sparkserve.bench.purity import QUIET
from sparkserve.bench.results import Boot, Result
from sparkserve.client.client import Client
from sparkserve.errors import SparkserveError
from sparkserve.output import write_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.bench.purity import Limits
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.watch import Source
    from sparkserve.gates.subject import Target

CONNECTIONS = 64  # more streams than any case has prompts for, and the reader of counters


class Place(Protocol):
    """Where a run measures: a fleet, or an endpoint of others."""

    def target(self) -> Target:
        """Who answers now. Raises `ENGINE.STATE`."""
        ...

    def source(self, target: Target) -> Source | None:
        """Where its nodes' facts come from; None when they cannot be had."""
        ...

    def restart(self) -> None:
        """Start its engine anew. Raises any error of `up` and `down`."""
        ...


def measure(
    place: Place,
    settings: Settings,
    output: Path,
    *,
    boots: int = 1,
    begun: Result | None = None,
    limits: Limits = QUIET,
    progress: Callable[[int, run.Progress], object] = lambda boot, where: None,
) -> Result:
    """Measure until `output` has `boots` whole boots; `begun` is what it had before.

    A boot that was cut short is gone on with when its engine still runs, else it stays as it is and another
    takes its place. Raises as `measure_boot`, `Watch.guarded` and `restart`; `output` then has all samples,
    and the reason among the boot's notes.
    """
    result = begun or Result(
        schema="sparkserve.bench/1",
        mode=settings.mode,
        seed=settings.seed,
        settings=settings.model_dump(mode="json"),
        machine=machine.describe(),
        boots=(),
    )
    target = place.target()
    while (whole := sum(1 for boot in result.boots if not is_cut(boot))) < boots:
        if any(not is_cut(boot) and _same(boot, target) for boot in result.boots):
            place.restart()
            target = place.target()
        # Of an endpoint without boots of its own nobody knows whether that engine still runs.
        known = [boot for boot in result.boots if is_cut(boot) and boot.subject.boot is not None]
        cut = next((boot for boot in known if _same(boot, target)), None)
        earlier = tuple(boot for boot in result.boots if boot is not cut)
        began = None if cut is None else _uncut(cut)

        def save(boot: Boot, earlier: tuple[Boot, ...] = earlier) -> None:
            nonlocal result
            result = result.model_copy(update={"boots": (*earlier, boot)})
            write_file(output, result.model_dump_json(by_alias=True, indent=1) + "\n")

        _boot(place, target, settings, began, whole, limits, save, partial(progress, whole))
    return result


def _boot(
    place: Place,
    target: Target,
    settings: Settings,
    begun: Boot | None,
    number: int,
    limits: Limits,
    save: Callable[[Boot], None],
    progress: Callable[[run.Progress], object],
) -> None:
    last, load = begun, machine.busy()
    source = place.source(target)
    watching = None if source is None else watch.Watch(source, target.plan)

    def changed(boot: Boot) -> None:
        nonlocal last
        last = _with(boot, [] if load is None else [load], watching)
        save(_cut(last, "still running"))

    async def work() -> Boot:
        way = Client(target.subject.endpoint, streams=CONNECTIONS, key_file=target.key_file)
        async with way as client:
            measuring = run.measure_boot(
                client,
                target.subject.model,
                settings,
                subject=target.subject,
                begun=begun,
                number=number,
                limits=limits,
                slow=watching.slow if watching else lambda: None,
                changed=changed,
                progress=progress,
            )
            return await (watching.guarded(measuring) if watching else measuring)

    try:
        if watching is None:
            asyncio.run(work())
        else:
            with watching:
                asyncio.run(work())
    except BaseException as error:
        if last is not None and (last.points or last.discarded):
            why = error.found if isinstance(error, SparkserveError) else "interrupted"
            save(_cut(last, why))
        raise
    if last is not None:
        save(last)


def _cut(boot: Boot, why: str) -> Boot:
    return boot.model_copy(update={"notes": (*_uncut(boot).notes, f"{CUT}: {why}")})


def _uncut(boot: Boot) -> Boot:
    return boot.model_copy(update={"notes": tuple(note for note in boot.notes if not note.startswith(CUT))})


def _same(boot: Boot, target: Target) -> bool:
    """Whether it is of the engine that answers now. An endpoint without boots of its own is taken for one."""
    now, then = target.subject, boot.subject
    # A fleet's endpoint may be a port that ssh forwards, another one for each command.
    here, there = ((each.fleet or each.endpoint, each.fleet_id, each.boot) for each in (now, then))
    return here == there


def _with(boot: Boot, notes: list[str], watching: watch.Watch | None) -> Boot:
    """With `notes`, the least memory of each node, and what was swapped."""
    lowest = {} if watching is None else {name: round(gib, 3) for name, gib in watching.lowest.items()}
    memory = {name: min(lowest.get(name, gib), gib) for name, gib in (boot.memory | lowest).items()}
    swapped = [] if watching is None else watching.notes()
    every = tuple(dict.fromkeys((*boot.notes, *notes, *swapped)))
    return boot.model_copy(update={"memory": memory, "notes": every})
