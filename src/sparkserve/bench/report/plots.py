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

    Where = Callable[[str, int], int | None]  # from a point's case and streams to its x; None: not here

ACCEPTED = "accepted_per_verified"
PERCENTILES = {"itl_p50_ms": "p50", "itl_p90_ms": "p90", "itl_p99_ms": "p99"}


class Section(NamedTuple):
    """A heading, a line on what is drawn, and the plots as SVG."""

    ident: str
    heading: str
    note: str
    plots: list[str]


def letters(report: Report) -> dict[str, str]:
    """The letter that a published table has in every plot, by its name."""
    return {name: chr(ord("A") + i) for i, name in enumerate(report.references)}


def sections(report: Report) -> list[Section]:
    """Those that have anything to show."""
    seen = {metric for arm in report.arms for row in arm.rows for metric in row.figures}
    aggregate = next((metric for metric in DECODE if metric in seen), DECODE[0])
    between = "Half of the gaps between tokens are below p50, one of a hundred is above p99."
    made = (
        Section("decode", "Decode", _meaning(aggregate), _by_case(report, "decode", (aggregate,))),
        Section("step", "Step", _meaning("step_ms"), _by_case(report, "step", ("step_ms",))),
        Section("prefill", "Prefill", _meaning("prefill_tps") + _texts(report), _prefill(report)),
        Section("itl", "Time between tokens", between, _by_case(report, "itl", tuple(PERCENTILES))),
        Section("accepted", "Acceptance", _meaning(ACCEPTED), _by_case(report, "accepted", (ACCEPTED,))),
    )
    return [section for section in made if section.plots]


def _meaning(metric: str) -> str:
    meaning = words.METRIC[metric].meaning
    return f"{meaning[0].upper()}{meaning[1:]}."


def _by_case(report: Report, ident: str, metrics: Sequence[str]) -> list[str]:
    rows = chain.from_iterable(arm.rows for arm in report.arms)
    cases = dict.fromkeys(
        row.case for row in rows if words.length(row.case) is None and row.figures.keys() & set(metrics)
    )
    plots: list[str] = []
    for case in cases:
        series = [
            each
            for metric in metrics
            for each in _series(report, metric, _streams_of(case), label=PERCENTILES.get(metric, ""))
        ]
        ticks = _ticks(series, lambda x: f"{x:g}")
        if metrics == (ACCEPTED,):
            frame = Frame(case, "streams", "accepted of verified drafts", ticks, top=1.0)
        else:
            frame = Frame(case, "streams", words.METRIC[metrics[0]].unit, ticks)
        plots.append(chart.draw(f"{ident}-{len(plots)}", frame, series))
    return plots


def _prefill(report: Report) -> list[str]:
    """A plot for each kind of text and number of streams. The note has the published tables' text."""
    found = [
        (row.text, row.streams)
        for arm in report.arms
        for row in arm.rows
        if words.length(row.case) and "prefill_tps" in row.figures
    ]
    plots: list[str] = []
    for text, streams in dict.fromkeys(found):
        series = _series(report, "prefill_tps", _length_at(streams), text=text)
        ticks = _ticks(series, lambda x: words.tokens(int(x)))
        title = f"{' and '.join(text)} text, {words.count(streams, 'stream')}"
        frame = Frame(title, "tokens of prompt", "tok/s", ticks)
        plots.append(chart.draw(f"prefill-{len(plots)}", frame, series))
    return plots


def _streams_of(case: str) -> Where:
    return lambda found, streams: streams if found == case else None


def _length_at(streams: int) -> Where:
    return lambda case, found: words.length(case) if found == streams else None


def _texts(report: Report) -> str:
    """Which text the published tables were made with."""
    letter = letters(report)
    said = []
    for name, reference in report.references.items():
        kinds = dict.fromkeys(p.text for p in reference.points.values() if "prefill_tps" in p.metrics)
        said += [f"{letter[name]} {' and '.join(kinds)}"] if kinds else []
    return f" Published with text of kind: {', '.join(said)}." if said else ""


def _ticks(series: Iterable[Series], said: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    return tuple((x, said(x)) for x in sorted({mark.x for each in series for mark in each.marks}))


def _series(
    report: Report, metric: str, where: Where, *, label: str = "", text: tuple[str, ...] = ()
) -> list[Series]:
    """One for each arm and published table with the metric. `text`: of ours only points with this text."""
    made = []
    for i, arm in enumerate(report.arms):
        marks = [
            _mark(x, row, row.figures[metric])
            for row in arm.rows
            if metric in row.figures and text in ((), row.text) and (x := where(row.case, row.streams))
        ]
        name = f"{arm.name} {label}".rstrip()
        made.append(Series(name, i, tuple(sorted(marks, key=_x)), label, hollow=label not in ("", "p50")))
    letter = letters(report)
    for name, reference in report.references.items():
        marks = [
            Mark(x, point.metrics[metric], f"{_at(x)}: {point.metrics[metric]:,}, published")
            for key, point in reference.points.items()
            if metric in point.metrics and (x := where(*place(key)))
        ]
        made.append(Series(reference.title, None, tuple(sorted(marks, key=_x)), letter[name]))
    return [series for series in made if series.marks]


def _x(mark: Mark) -> float:
    return mark.x


def _mark(x: int, row: Row, figure: Figure) -> Mark:
    said = f"{_at(x)}: {words.number(figure.mean)} ({words.span(figure)})"
    if row.failed:
        said += f", {words.count(row.failed, 'request')} failed"
    return Mark(
        x, figure.mean, said, figure.low, figure.high, one_boot=figure.over == "samples", dots=figure.boots
    )


def _at(x: float) -> str:
    return words.tokens(int(x)) if x > 512 else f"{x:g}"
