"""The report as one HTML page: nothing from elsewhere, no script, light and dark, fit to print."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from sparkserve.bench.report import chart, plots, tables, words
from sparkserve.fleet import svg

if TYPE_CHECKING:
    from sparkserve.bench.report.model import Report


def html(report: Report) -> str:
    """The page. What a result says of itself is text in it, whatever it says."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("sparkserve.bench.report"), autoescape=True, undefined=StrictUndefined
    )
    # Ours, and each text in them was escaped by the XML writer.
    sections = [s._replace(plots=list(map(Markup, s.plots))) for s in plots.sections(report)]
    seen = {metric for arm in report.arms for row in arm.rows for metric in row.figures}
    page = environment.get_template("page.html").render(
        report=report,
        who=tables.who(report),
        sections=sections,
        letters=plots.letters(report),
        swatches=list(map(Markup, map(_swatch, [*range(len(report.arms)), None]))),
        colours=chart.COLOURS,
        beside=list(tables.side_by_side(report)),
        figures=[table for arm in report.arms for table in tables.all_figures(arm)],
        meanings=[words.METRIC[metric] for metric in words.METRIC if metric in seen],
        notes=tables.notes(report),
        discarded=[found for arm in report.arms if (found := tables.discarded(arm)).rows],
        identity=tables.identity(report),
        published=[tables.published(reference) for reference in report.references.values()],
    )
    return words.plain(page)


def _swatch(arm: int | None) -> str:
    """A line with the arm's shape, as in the plots."""
    root = ET.Element("svg", {"viewBox": "0 0 34 14", "aria-hidden": "true"})
    line = svg.line(root, "M1 7H33", "currentColor", 1.8)
    if arm is None:
        line.set("stroke-dasharray", "5 4")
    fill = chart.PAPER if arm is None else "currentColor"
    shape = chart.SHAPES[(arm or 0) % len(chart.SHAPES)]
    ET.SubElement(root, "path", {"d": f"M17 7{shape}", "fill": fill, "stroke": "currentColor"})
    return ET.tostring(root, encoding="unicode")
