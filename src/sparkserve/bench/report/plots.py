"""Which plots a report has: a section for a metric, in it a plot for each case."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench.references import place
from sparkserve.bench.report import chart, words
from sparkserve.bench.report.build import DECODE
from sparkserve.bench.report.chart import Frame, Mark, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sparkserve.bench.report.model import Figure, Report, Row

PERCENTILES = {"itl_p50_ms": "p50", "itl_p90_ms": "p90", "itl_p99_ms": "p99"}


class Section(NamedTuple):
    """A heading, a line on what is drawn, and the plots as SVG."""

    ident: str
    heading: str
    note: str
    plots: tuple[str, ...]


def letters(report: Report) -> dict[str, str]:
    """The letter that a published table has in every plot, by its name."""
    return {name: chr(ord("A") + i) for i, name in enumerate(report.references)}


def sections(report: Report) -> list[Section]:
    """Those that have anything to show."""
    rows = [row for arm in report.arms for row in arm.rows]
    aggregate = next((m for m in DECODE if any(m in row.figures for row in rows)), DECODE[0])
    wanted = (
        ("decode", "Decode", (aggregate,)),
        ("step", "Step", ("step_ms",)),
        ("prefill", "Prefill", ("prefill_tps",)),
        ("itl", "Time between tokens", tuple(PERCENTILES)),
        ("accepted", "Acceptance", ("accepted_per_verified",)),
    )
    made = []
    for ident, heading, metrics in wanted:
        plots = _prefill(report) if ident == "prefill" else _by_case(report, ident, metrics)
        if plots:
            note = words.METRIC[metrics[0]].meaning
            if ident == "itl":
                note = "Half of the gaps between tokens are below p50, one of a hundred is above p99."
            made.append(Section(ident, heading, note[0].upper() + note[1:].rstrip(".") + ".", tuple(plots)))
    return made


def _by_case(report: Report, ident: str, metrics: Sequence[str]) -> list[str]:
    rows = chain.from_iterable(arm.rows for arm in report.arms)
    cases = dict.fromkeys(
        row.case for row in rows if words.length(row.case) is None and row.figures.keys() & set(metrics)
    )
    plots = []
    for case in cases:
        series = [
            each
            for metric in metrics
            for each in _series(
                report,
                metric,
                lambda c, streams, case=case: streams if c == case else None,
                label=PERCENTILES.get(metric, ""),
            )
        ]
        unit = words.METRIC[metrics[0]].unit.replace("of 1", "accepted of verified drafts")
        top = 1.0 if unit.startswith("accepted") else None
        frame = Frame(case, "streams", unit, _ticks(series, lambda x: f"{x:g}"), top)
        plots.append(chart.draw(f"{ident}-{len(plots)}", frame, series))
    return plots


def _prefill(report: Report) -> list[str]:
    rows = list(chain.from_iterable(arm.rows for arm in report.arms))
    prefills = [row for row in rows if words.length(row.case) and "prefill_tps" in row.figures]
    plots = []
    for streams in sorted({row.streams for row in prefills}):
        series = _series(report, "prefill_tps", lambda c, n, n0=streams: words.length(c) if n == n0 else None)
        ticks = _ticks(series, lambda x: words.tokens(int(x)))
        frame = Frame(words.count(streams, "stream"), "tokens of prompt", "tok/s", ticks)
        plots.append(chart.draw(f"prefill-{len(plots)}", frame, series))
    return plots


def _ticks(series: Iterable[Series], said: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    return tuple((x, said(x)) for x in sorted({mark.x for each in series for mark in each.marks}))


def _series(
    report: Report, metric: str, where: Callable[[str, int], int | None], *, label: str = ""
) -> list[Series]:
    """One for each arm and published table with the metric; `where` gives a point's x, None for none."""
    made = []
    for i, arm in enumerate(report.arms):
        marks = [
            _mark(x, row, row.figures[metric])
            for row in arm.rows
            if metric in row.figures and (x := where(row.case, row.streams))
        ]
        name = f"{arm.name} {label}".rstrip()
        made.append(Series(name, i, tuple(marks), label, hollow=label not in ("", "p50")))
    letter = letters(report)
    for name, reference in report.references.items():
        marks = [
            Mark(x, point.metrics[metric], f"{_at(x)}: {point.metrics[metric]:,}, published")
            for key, point in reference.points.items()
            if metric in point.metrics and (x := where(*place(key)))
        ]
        made.append(Series(reference.title, None, tuple(sorted(marks)), letter[name]))
    return [series for series in made if series.marks]


def _mark(x: int, row: Row, figure: Figure) -> Mark:
    said = f"{_at(x)}: {words.number(figure.mean)} ({words.span(figure)})"
    if row.failed:
        said += f", {words.count(row.failed, 'request')} failed"
    return Mark(
        x, figure.mean, said, figure.low, figure.high, one_boot=figure.over == "samples", dots=figure.boots
    )


def _at(x: float) -> str:
    return words.tokens(int(x)) if x > 512 else f"{x:g}"
