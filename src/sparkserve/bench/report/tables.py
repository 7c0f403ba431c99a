"""The tables of a report, as text: HTML and Markdown show the same ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.bench.references import Place, place
from sparkserve.bench.report import words
from sparkserve.bench.report.build import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sparkserve.bench.references import Published, Reference
    from sparkserve.bench.report.model import Arm, Figure, Report

ONE_BOOT = "†"
FOOTNOTE = f"{ONE_BOOT} The interval is of samples of one boot; the next boot may lie outside."
NONE = words.DASH


class Cell(NamedTuple):
    """`detail` is smaller, below or behind `value`."""

    value: str
    detail: str = ""


class Column(NamedTuple):
    """A column's head. `published`: its figures are another's."""

    name: str
    unit: str = ""
    published: bool = False
    text: bool = False  # no figures: at the left


class Table(NamedTuple):
    """The first cell of a row is its name."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""  # behind the title
    fixed: bool = False  # the names of the columns are ours, so none is long

    @property
    def footnote(self) -> str:
        """What a sign in a cell means."""
        used = any(ONE_BOOT in cell.detail for row in self.rows for cell in row)
        return FOOTNOTE if used else ""


def figure(value: Figure | None) -> Cell:
    """A figure with its interval."""
    if value is None:
        return Cell(NONE)
    said = words.span(value).replace(" in one boot", ONE_BOOT)
    return Cell(words.number(value.mean), said)


def side_by_side(report: Report) -> Iterator[Table]:
    """A table for each metric that arms are chosen by: arms, then published tables."""
    ours = [{row.name: row for row in arm.rows} for arm in report.arms]
    points = {name: row for rows in ours for name, row in rows.items()}
    theirs = [
        (reference.title, {_at(*place(name)): point for name, point in reference.points.items()})
        for reference in report.references.values()
    ]
    for metric in (*DECODE, "step_ms", "prefill_tps"):
        here = {
            name: _at(row.case, row.streams)
            for name, row in points.items()
            if any(name in rows and metric in rows[name].figures for rows in ours)
        }
        beside = [(title, has) for title, has in theirs if any(_has(has, at, metric) for at in here.values())]
        if not here or len(ours) + len(beside) < 2:
            continue
        named = words.METRIC[metric]
        columns = [Column("point"), *(Column(arm.name, named.unit) for arm in report.arms)]
        columns += [Column(title, named.unit, published=True) for title, _ in beside]
        rows = tuple(
            (
                Cell(name),
                *(figure(rows[name].figures.get(metric)) if name in rows else Cell(NONE) for rows in ours),
                *(_published(_has(has, at, metric), detail=_kind(has, at)) for _, has in beside),
            )
            for name, at in here.items()
        )
        yield Table(f"{named.name}, {named.unit}: {named.meaning}", tuple(columns), rows)


def _at(case: str, streams: int) -> Place:
    """Where a point is looked up: a prefill by its length, whatever text it has."""
    length = words.length(case)
    return Place(case if length is None else f"prefill-{length}", streams)


def _has(points: Mapping[Place, Published], at: Place, metric: str) -> float | None:
    return points[at].metrics.get(metric) if at in points else None


def _kind(points: Mapping[Place, Published], at: Place) -> str:
    """The text that was sent, where it decides the figure."""
    return points[at].text if at in points and words.length(at.case) else ""


def _published(value: float | None, percent: float | None = None, detail: str = "") -> Cell:
    if value is None:
        return Cell(NONE)
    return Cell(
        f"{value:,.0f}" if value >= 1000 and value.is_integer() else f"{value:,}",
        f"± {percent:g} %" if percent is not None else detail,
    )


def all_figures(arm: Arm) -> Iterator[Table]:
    """Every metric of every point of an arm: decode and the rest, then prefill, which has other metrics."""
    prefill = [row for row in arm.rows if words.length(row.case)]
    for what, rows in (("", [row for row in arm.rows if row not in prefill]), ("prefill, ", prefill)):
        metrics = [metric for metric in words.METRIC if any(metric in row.figures for row in rows)]
        failed = any(row.failed for row in rows)
        columns = [Column("point"), *([Column("failed", "requests")] if failed else [])]
        columns += [Column(words.METRIC[metric].name, words.METRIC[metric].unit) for metric in metrics]
        lines = [
            (
                Cell(row.name, f"{' and '.join(row.text)}, {words.count(row.samples, 'sample')}"),
                *([Cell(f"{row.failed:,}")] if failed else []),
                *(figure(row.figures.get(metric)) for metric in metrics),
            )
            for row in rows
        ]
        if lines:
            note = f"{what}over {words.count(len(arm.boots), 'boot')}"
            yield Table(arm.name, tuple(columns), tuple(lines), note=note, fixed=True)


def published(reference: Reference) -> Table:
    """All that an author gives, with the intervals that are the author's."""
    points = reference.points
    metrics = [metric for metric in words.METRIC if any(metric in point.metrics for point in points.values())]
    columns = [Column("point")]
    columns += [
        Column(words.METRIC[metric].name, words.METRIC[metric].unit, published=True) for metric in metrics
    ]
    rows = [
        (
            Cell(name, point.text),
            *(_published(point.metrics.get(metric), point.percent.get(metric)) for metric in metrics),
        )
        for name, point in points.items()
    ]
    return Table(
        f"{reference.title}, published {reference.published}", tuple(columns), tuple(rows), fixed=True
    )


def identity(report: Report) -> Table:
    """What was measured, an arm a row; several values where boots differ."""
    heads = ("fleet", "fleet id", "plan", "engine", "model", "endpoint")
    columns = (
        Column("arm"),
        *(Column(h, text=True) for h in (*heads, "boots", "mode and seed", "machine", "settings")),
    )
    rows = []
    for arm in report.arms:
        subjects = [start.subject for start in arm.boots]
        rows.append(
            (
                Cell(arm.name),
                _all(subject.fleet for subject in subjects),
                _all(subject.fleet_id for subject in subjects),
                _all(subject.plan_sha256 for subject in subjects),
                _all(_pairs(subject.engine) for subject in subjects),
                _all(subject.model for subject in subjects),
                _all(subject.endpoint for subject in subjects),
                _all(", ".join(dict.fromkeys((start.id, start.started))) for start in arm.boots),
                Cell(f"{arm.mode}, seed {arm.seed}"),
                Cell(_pairs(arm.machine) or NONE),
                Cell(_pairs(arm.settings) or NONE),
            )
        )
    return Table("Identity", columns, tuple(rows))


def _all(values: Iterable[str | None]) -> Cell:
    return Cell("; ".join(dict.fromkeys(value or NONE for value in values)) or NONE)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_said(value)}" for key, value in values.items())


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def discarded(arm: Arm) -> Table:
    """Samples that were thrown away and measured again."""
    rows = [
        (Cell(each.point), Cell(str(each.round)), Cell(start.id), Cell(each.why))
        for start in arm.boots
        for each in start.discarded
    ]
    columns = (Column("point"), Column("round"), Column("boot", text=True), Column("why", text=True))
    return Table(arm.name, columns, tuple(rows), note="discarded and measured again")


def who(report: Report) -> list[str]:
    """A line for each arm: what was measured, when, and how often."""
    lines = []
    for arm, row in zip(report.arms, identity(report).rows, strict=True):
        _, _, fleet_id, _, engine, model, *_ = (cell.value for cell in row)
        said = [
            model,
            engine,
            fleet_id if fleet_id == NONE else f"fleet id {fleet_id[:12]}",
            f"seed {arm.seed}",
            words.count(len(arm.boots), "boot"),
        ]
        said += dict.fromkeys(start.started[:10] for start in arm.boots)
        said += [str(arm.machine["processor"])] if "processor" in arm.machine else [_pairs(arm.machine)]
        lines.append(
            (f"{arm.name}: " if len(report.arms) > 1 else "")
            + " · ".join(s for s in said if s not in ("", NONE))
        )
    return lines


def notes(report: Report) -> list[str]:
    """What each boot's file says a reader must know."""
    return [
        f"{f'{arm.name}, ' if len(report.arms) > 1 else ''}boot {start.id}: {note}"
        for arm in report.arms
        for start in arm.boots
        for note in start.notes
    ]
