"""The report as Markdown, for an issue or a terminal: the tables without the plots."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from sparkserve.bench.report import plots, tables, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sparkserve.bench.report.model import Report
    from sparkserve.bench.report.tables import Cell, Table

# What begins anything in Markdown; @ would tell a person of that name, where the text is an issue's.
_SIGNS = {ord(sign): f"\\{sign}" for sign in "\\`*_{}[]<>#|~!$"} | {ord("@"): "&commat;", ord("&"): "&amp;"}


def markdown(report: Report) -> str:
    """The text. What a result says of itself is text in it, whatever it says."""
    lines = chain(_head(report), _tables(report), _rest(report), _published(report))
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown reads."""
    return " ".join(words.plain(text).split()).translate(_SIGNS)


def _head(report: Report) -> Iterator[str]:
    yield f"# {escape(report.title)}"
    for line in tables.who(report):
        yield f"\n{escape(line)}"
    for arm, summary in zip(report.arms, report.summaries, strict=True):
        yield f"\n## {escape(arm.name)}\n\n{summary.sentence}\n"
        for tile in summary.tiles:
            detail = f" ({tile.detail})" if tile.detail else ""
            yield f"- {tile.label}, {escape(tile.where)}: **{tile.value}** {tile.unit}{detail}"
    if report.warnings:
        yield "\n> **Before you read a figure**\n>"
        yield from (f"> - {escape(warning)}" for warning in report.warnings)


def _tables(report: Report) -> Iterator[str]:
    figures = chain.from_iterable(map(tables.all_figures, report.arms))
    for table in chain(tables.side_by_side(report), figures):
        yield from _table(table)


def _rest(report: Report) -> Iterator[str]:
    found = [table for arm in report.arms if (table := tables.discarded(arm)).rows]
    notes = tables.notes(report)
    if found or notes:
        yield "\n## Notes and discarded samples\n"
        yield from (f"- {escape(note)}" for note in notes)
        for table in found:
            yield from _table(table)
    yield "\n## Identity"
    identity = tables.identity(report)
    for row in identity.rows:
        yield f"\n{escape(row[0].value)}\n"
        named = zip(identity.columns[1:], row[1:], strict=True)
        yield from (f"- {column.name}: {escape(cell.value)}" for column, cell in named)


def _published(report: Report) -> Iterator[str]:
    letter = plots.letters(report)
    if report.references:
        yield "\n## Published tables\n\nFrom other machines, by other protocols. They enter no statistic."
    for name, reference in report.references.items():
        yield f"\n### {letter[name]}: {reference.title}\n"
        yield f"{reference.project}, {reference.published}. {reference.machine}. {reference.engine}.\n"
        yield from (f"- {escape(text)}" for text in (*reference.conditions, *reference.caveats))
        yield from _table(tables.published(reference))


def _table(table: Table) -> Iterator[str]:
    title = f"{escape(table.title)}{', ' if table.note else ''}{table.note}"
    yield f"\n**{title}**\n"
    heads = (
        escape(column.name)
        + (f", {column.unit}" if column.unit else "")
        + (" (published)" if column.published and not table.fixed else "")
        for column in table.columns
    )
    yield _line(heads)
    yield _line("---" if i == 0 or column.text else "---:" for i, column in enumerate(table.columns))
    for row in table.rows:
        yield _line(map(_cell, row))
    if table.footnote:
        yield f"\n{table.footnote}"


def _cell(cell: Cell) -> str:
    return escape(cell.value) + (f" ({escape(cell.detail)})" if cell.detail else "")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
