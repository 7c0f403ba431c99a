"""Draws the memory of a fleet's nodes as SVG: a bar for each kind of node, and what its parts are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.fleet import svg
from sparkserve.fleet.svg import FAINT, INK
from sparkserve.memory.explain import WHEN, gib, left, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree import ElementTree as ET

    from sparkserve.memory.explain import Shared

WIDTH, MARGIN, BAR, ROW = 900, 24, 44, 19
COLOURS = (
    *("#b9c4cb", "#8a9aa5", "#9fc5c1", "#5b8db8", "#82a9c9", "#a8c4da", "#c3d6e5", "#d9e4ee"),
    *("#a9cba4", "#e2b25b", "#ecca8c", "#c79bc9", "#dcc3dd", "#e3a99d", "#efc6bd", "#d97b66"),
)
PAPER, FREE = "#f4f6f7", "#ffffff"


def draw(fleet: str, shared: Sequence[Shared]) -> str:
    """The text of the SVG file."""
    page = svg.page(f"Memory of {fleet}")
    paper = svg.rect(page, svg.Box(0, 0, WIDTH, 0), PAPER, "none")
    svg.text(page, MARGIN, 44, f"Memory of {fleet}", WIDTH - 2 * MARGIN, size=20, bold=True)
    # One colour for one name, also where a node has no such term.
    names = list(dict.fromkeys(term.name for each in shared for term in each.memory.terms))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    y = 76.0
    for each in shared:
        svg.text(page, MARGIN, y, ", ".join(each.nodes), WIDTH - 2 * MARGIN, size=14, bold=True)
        _bar(page, each, y + 12, colours)
        y = _legend(page, each, y + 12 + BAR + 34, colours) + 34
    paper.set("height", f"{y:g}")
    return svg.finish(page, WIDTH, y)


def _bar(page: ET.Element, shared: Shared, y: float, colours: dict[str, str]) -> None:
    memory = shared.memory
    scale = (WIDTH - 2 * MARGIN) / memory.pool_bytes
    svg.rect(page, svg.Box(MARGIN, y, memory.pool_bytes * scale, BAR), FREE, radius=0)
    done = 0
    for term in memory.terms:
        box = svg.Box(MARGIN + done * scale, y, term.bytes * scale, BAR)
        svg.rect(page, box, colours[term.name], "none", radius=0)
        # A name that would be cut says less than none.
        if box.width > 8 * len(term.name):
            svg.text(page, box.middle, y + BAR / 2 + 4, term.name, box.width, size=11, anchor="middle")
        done += term.bytes
    if not shared.guarded:
        return
    # Where the guard kills while the engine serves: what is right of it belongs to the node.
    line = MARGIN + (memory.pool_bytes - memory.serve_line_bytes) * scale
    svg.rect(page, svg.Box(line - 1, y - 4, 2, BAR + 8), INK, "none", radius=0)
    svg.text(page, WIDTH - MARGIN, y + BAR + 16, "guard", 60, size=11, anchor="end", colour=FAINT)


def _legend(page: ET.Element, shared: Shared, y: float, colours: dict[str, str]) -> float:
    for term in shared.memory.terms:
        svg.rect(page, svg.Box(MARGIN, y - 10, 12, 12), colours[term.name], radius=2)
        svg.text(page, MARGIN + 20, y, term.name, 90)
        svg.text(page, MARGIN + 170, y, f"{gib(term.bytes)} GiB", 90, anchor="end")
        svg.text(page, MARGIN + 184, y, WHEN[term.phase], 100, size=11, colour=FAINT)
        svg.text(page, MARGIN + 290, y, term.why, WIDTH - 2 * MARGIN - 290, size=11, colour=FAINT)
        y += ROW
    for each in left(shared.memory):
        said = f"{each.time}: {words(each, guarded=shared.guarded)}"
        svg.text(page, MARGIN, y + 4, said, WIDTH - 2 * MARGIN, bold=each.above < 0)
        y += ROW
    return y
