"""Draws power over true change from docs/results/stats.json.

PYTHONPATH=src:tests python -m campaigns.plot docs/results/stats.json docs/results/power.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from sparkserve.fleet import svg

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 500, 50, 310
COLOURS = ("#c2553d", "#2f6f9f", "#3d8a55")


def x(change: float) -> float:
    return LEFT + (RIGHT - LEFT) * change / 10


def y(percent: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * percent / 100


def draw(rows: list[dict[str, Any]]) -> str:
    """The text of an SVG: a line for each number of boots, with binomial intervals of 95 %."""
    page = svg.page("Share of campaigns that bench compare calls a regression, by true change")
    svg.rect(page, svg.Box(0, 0, WIDTH, HEIGHT), "#ffffff", "none", radius=0)
    svg.text(page, LEFT, 28, "Campaigns called a regression, by true slowdown", 560, size=15, bold=True)
    for percent in (0, 20, 40, 60, 80, 100):
        _line(page, [(LEFT, y(percent)), (RIGHT, y(percent))], "#d5dbdf")
        svg.text(page, LEFT - 8, y(percent) + 4, f"{percent} %", 50, anchor="end", colour=svg.FAINT)
    for change in (0, 2, 5, 10):
        svg.text(page, x(change), BOTTOM + 20, f"{change} %", 50, anchor="middle", colour=svg.FAINT)
    svg.text(page, (LEFT + RIGHT) / 2, BOTTOM + 40, "true slowdown of all 8 points", 400, anchor="middle")
    boots = sorted({row["boots"][0] for row in rows})
    for count, colour in zip(boots, COLOURS, strict=True):
        mine = [row for row in rows if row["boots"][0] == count]
        _line(page, [(x(row["change"]), y(row["regression"]["percent"])) for row in mine], colour, 2)
        for row in mine:
            at, found = x(row["change"]), row["regression"]
            _line(page, [(at, y(found["low"])), (at, y(found["high"]))], colour, 4)
        last = mine[-1]["regression"]["percent"]
        svg.text(page, RIGHT + 10, y(last) + 4 + 16 * (count == boots[1]), f"{count} boots an arm", 130)
        svg.rect(page, svg.Box(RIGHT + 112, y(last) - 5 + 16 * (count == boots[1]), 10, 10), colour, "none")
    return svg.finish(page, WIDTH, HEIGHT)


def _line(page: ET.Element, points: list[tuple[float, float]], colour: str, width: float = 1) -> None:
    at = " ".join(f"{a:g},{b:.1f}" for a, b in points)
    look = {"points": at, "fill": "none", "stroke": colour, "stroke-width": f"{width:g}"}
    ET.SubElement(page, "polyline", look)


if __name__ == "__main__":
    figures = json.loads(Path(sys.argv[1]).read_text())["compared"]["figures"]
    shown = [row for row in figures if row["what"] == "all points"]
    Path(sys.argv[2]).write_text(draw(shown), encoding="utf-8")
