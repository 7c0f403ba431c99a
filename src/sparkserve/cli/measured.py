"""A mode of the bench run from the command line: progress, the result's file, its table."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sparkserve.bench import capacity, session
from sparkserve.bench.modes.admission import BROKEN
from sparkserve.bench.report import figures
from sparkserve.bench.settings import Settings
from sparkserve.cli import measuring
from sparkserve.errors import SparkserveError
from sparkserve.output import print_json
from sparkserve.terminal import console, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.bench import run as running
    from sparkserve.bench.report.model import Figure
    from sparkserve.bench.results import Result
    from sparkserve.bench.session import Place

# A minute on a laptop; three samples are the fewest with an interval that says anything.
QUICK: dict[str, Any] = {
    "cases": ("prose",),
    "streams": (1, 2),
    "tokens": 64,
    "sizes": (1024,),
    "requests": 8,
    "min": 3,
    "max": 3,
}
# In the order of the table: what decides first.
_SHOWN = (
    *("step_ms", "tps", "decode_window_tps", "stream_tps", "tokens_per_step", "accepted_per_verified"),
    *("prefill_tps", "ttft_s", "itl_p50_ms", "itl_p99_ms", "hit_rate"),
)


class How(NamedTuple):
    """How many boots, into which file, going on with which, and whether the result is printed as JSON."""

    boots: int
    output: Path | None
    resume: Path | None
    as_json: bool


def settings_of(begun: Result, path: Path) -> Settings:
    """The settings that a result was made with. Raises `BENCH.RESULT` when they are of another version."""
    try:
        return Settings.model_validate_json(json.dumps(begun.settings))
    except ValueError as error:
        raise SparkserveError(
            "BENCH.RESULT",
            expected="the settings of this version's bench",
            found=" ".join(str(error).split())[:200],
            where=str(path),
            do="Measure anew: another version may measure otherwise.",
        ) from None


def run(where: Place, settings: Settings, chosen: set[str], how: How, begun: Result | None) -> None:
    """Measure at `where` and print. `chosen` are the settings that the user named."""
    target = where.target()
    if begun is None:
        settings = measuring.fitted(settings, chosen, capacity.of(target))
    output = how.output or how.resume or _file(settings.mode)
    if output.exists() and output != how.resume:
        raise click.UsageError(f"{output} is there: name another file, or go on with --resume {output}")
    output.parent.mkdir(parents=True, exist_ok=True)
    console.print(f"{target.subject.model} at {target.subject.endpoint}, seed {settings.seed}, into {output}")
    try:
        with _Shown(how.boots) as shown:
            result = session.measure(
                where, settings, output, boots=how.boots, begun=begun, progress=shown.progress
            )
    except BaseException:
        if output.exists():
            console.print(f"What was measured is in {output}; go on with --resume {output}.")
        raise
    if how.as_json:
        print_json(result.model_dump(mode="json", by_alias=True))
    else:
        show(result)
    broken = [note for boot in result.boots for note in boot.notes if note.startswith(BROKEN)]
    if broken:
        raise SparkserveError(
            "BENCH.REQUEST",
            expected="all documents answered, all running at one time, none retracted",
            found="; ".join(broken),
            where=str(output),
            do="Plan for fewer or shorter ones: engine.maxRunning, and what docs/memory.md explains.",
        )


def show(result: Result) -> None:
    """Print each point's means with their intervals, and what readers must know."""
    found = figures.of(result)
    shown = [name for name in _SHOWN if any(name in row.figures for row in found)]
    rows = [(row.name, *(_cell(row.figures.get(metric)) for metric in shown)) for row in found]
    print_table(("point", *shown), rows)
    boots = len(result.boots)
    what = f"over {boots} boots" if boots > 1 else "over the samples of one boot: compare wants several boots"
    console.print(f"Means with 95 % intervals in percent, {what}.")
    for boot in result.boots:
        for note in boot.notes:
            console.print(f"{boot.id}: {note}")
        for lost in boot.discarded:
            console.print(f"{boot.id}: thrown away and repeated: {lost.point} {lost.round}, {lost.why}")


def _cell(found: Figure | None) -> str:
    """The mean, and half of its interval in percent."""
    if found is None:
        return "-"
    if found.low is None or found.high is None or not found.mean:
        return f"{found.mean:.4g}"
    return f"{found.mean:.4g} ±{50 * (found.high - found.low) / abs(found.mean):.1f} %"


class _Shown:
    """The bar on a terminal, a line for each tenth elsewhere."""

    def __init__(self, boots: int) -> None:
        self._boots = boots
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
        self._bar = Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=None, left="")
        self._begun = (-1, 0, 0.0)  # boot, samples that it had then, and when
        self._told = (-1, 0)

    def __enter__(self) -> _Shown:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, boot: int, where: running.Progress) -> None:
        """See `session.measure`."""
        if boot != self._begun[0]:
            self._begun = (boot, where.taken, time.monotonic())
        left, name = self._left(where), f"boot {boot + 1} of {self._boots}, {where.point}"
        self._bar.update(self._task, description=name, completed=where.taken, total=where.wanted, left=left)
        tenth = (boot, 10 * where.taken // max(where.wanted, 1))
        if not console.is_terminal and tenth != self._told:
            self._told = tenth
            console.print(f"{name}: {where.taken} of {where.wanted} samples {left}".rstrip())

    def _left(self, where: running.Progress) -> str:
        """What the rest of this boot takes at its pace so far."""
        _, had, when = self._begun
        if where.taken == had:
            return ""
        left = (time.monotonic() - when) / (where.taken - had) * (where.wanted - where.taken)
        return f"about {left / 60:.0f} min left" if left > 90 else f"about {left:.0f} s left"


def _file(mode: str) -> Path:
    from sparkserve import checkout

    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return checkout.state() / "bench" / f"{now}-{mode}.json"
