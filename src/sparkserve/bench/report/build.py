"""Makes the report of several results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench.report import figures, words
from sparkserve.bench.report.model import Arm, Report, Start, Summary, Tile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sparkserve.bench.references import Reference
    from sparkserve.bench.report.model import Row
    from sparkserve.bench.results import Result

# What the aggregate of a decode point is: the window's figure, which everybody publishes, else the whole's.
DECODE = ("decode_window_tps", "tps")


def build(results: Sequence[tuple[str, Result]], references: Mapping[str, Reference]) -> Report:
    """The report of `results`, each with the name of its arm. Arms of one name get a number."""
    arms = tuple(
        _arm(name, result)
        for name, result in zip(_apart([n for n, _ in results]), (r for _, r in results), strict=True)
    )
    fleets = dict.fromkeys(start.subject.fleet or start.subject.model for arm in arms for start in arm.boots)
    modes = dict.fromkeys(arm.mode for arm in arms)
    return Report(
        schema="sparkserve.report/1",
        title=f"bench {', '.join(modes)}: {', '.join(fleets) or 'nothing measured'}",
        summaries=tuple(_summary(arm) for arm in arms),
        warnings=words.warnings(arms),
        arms=arms,
        references=dict(references),
    )


def _apart(names: Sequence[str]) -> list[str]:
    return [f"{n} {names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def _arm(name: str, result: Result) -> Arm:
    starts = [
        Start(
            id=boot.id,
            started=boot.started,
            subject=boot.subject,
            memory=boot.memory,
            notes=boot.notes,
            discarded=boot.discarded,
        )
        for boot in result.boots
    ]
    return Arm(
        name=name,
        mode=result.mode,
        seed=result.seed,
        settings=result.settings,
        machine=result.machine,
        boots=tuple(starts),
        rows=figures.of(result),
    )


def _summary(arm: Arm) -> Summary:
    requests = sum(row.samples * row.streams for row in arm.rows)
    failed = sum(row.failed for row in arm.rows)
    sentence = ", ".join(
        (
            words.count(len(arm.boots), "boot"),
            words.count(len(arm.rows), "point"),
            words.count(requests, "request"),
            f"{failed:,} of them failed" if failed else "none of them failed",
        )
    )
    return Summary(sentence=sentence, tiles=tuple(_tiles(arm)))


def _tiles(arm: Arm) -> Iterable[Tile]:
    """At most six: one stream's speed and step, the most of all streams, prefill, first token, memory."""
    decode = [row for row in arm.rows if words.length(row.case) is None and aggregate(row)]
    if decode:
        least = min(row.streams for row in decode)
        # Prose is the case that everybody quotes.
        alone = min((r for r in decode if r.streams == least), key=lambda r: not r.case.startswith("prose"))
        yield _tile(alone, aggregate(alone), "decode")
        most = max(decode, key=lambda row: row.figures[aggregate(row)].mean)
        if most is not alone:
            yield _tile(most, aggregate(most), "most at once")
        yield from (
            _tile(alone, metric, words.METRIC[metric].name)
            for metric in ("step_ms", "ttft_s")
            if metric in alone.figures
        )
    longest = max(
        (row for row in arm.rows if words.length(row.case) and "prefill_tps" in row.figures),
        key=lambda row: (words.length(row.case) or 0, -row.streams),
        default=None,
    )
    if longest:
        yield _tile(longest, "prefill_tps", "prefill")
    if not decode and not longest:  # prefix, mixed: their points are told by one metric
        for metric in ("step_ms", "ttft_s"):
            if found := [row for row in arm.rows if metric in row.figures]:
                yield from (_tile(row, metric, words.METRIC[metric].name) for row in found[-2:])
                break
    lowest = [(gib, node) for start in arm.boots for node, gib in start.memory.items()]
    if lowest:
        gib, node = min(lowest)
        yield Tile(label="lowest memory", where=node, value=words.number(gib), unit="GiB", detail="")


def aggregate(row: Row) -> str:
    """The metric that says what all streams got together; empty when the row has none."""
    return next((metric for metric in DECODE if metric in row.figures), "")


def _tile(row: Row, metric: str, label: str) -> Tile:
    figure, size = row.figures[metric], words.length(row.case)
    return Tile(
        label=label,
        where=f"{words.tokens(size)} tokens, {' and '.join(row.text)}" if size else row.name,
        value=words.number(figure.mean),
        unit=words.METRIC[metric].unit,
        detail=words.span(figure),
    )
