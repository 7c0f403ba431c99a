"""The few SVG elements that a picture needs, with text that stays inside the room it is given.

Nobody measures text here. Fonts differ between machines, so a line gets the room of a wide font, and one
that would still not fit is cut, with the whole of it in a tooltip.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import east_asian_width
from xml.etree import ElementTree as ET

SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
# Width of a character as a part of the font's size.
MONO_EM, SANS_EM, BOLD_EM = 0.61, 0.58, 0.68
INK, FAINT, LINE = "#22303a", "#52636f", "#8a9aa5"


class Box(NamedTuple):
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x of its middle."""
        return self.x + self.width / 2


def page(title: str) -> ET.Element:
    """An empty picture; `finish` gives it a size."""
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
    ET.SubElement(root, "title").text = clean(title)
    return root


def finish(page: ET.Element, width: float, height: float) -> str:
    """The text of the SVG file."""
    page.attrib |= {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    ET.indent(page)
    return ET.tostring(page, encoding="unicode") + "\n"


def rect(
    page: ET.Element, box: Box, fill: str, stroke: str = LINE, *, radius: float = 6, dash: str = "none"
) -> ET.Element:
    """A rectangle with round corners, which it returns."""
    place = {key: f"{value:g}" for key, value in box._asdict().items()}
    look = {"rx": f"{radius:g}", "fill": fill, "stroke": stroke, "stroke-dasharray": dash}
    return ET.SubElement(page, "rect", place | look)


def text(
    page: ET.Element,
    x: float,
    y: float,
    words: str,
    room: float,
    *,
    size: float = 12,
    mono: bool = False,
    anchor: str = "start",
    bold: bool = False,
    colour: str = INK,
) -> None:
    """One line of text whose base line is at `y`, cut to `room` pixels; nothing when `words` is empty."""
    if not words:
        return
    look = {"font-size": f"{size:g}", "fill": colour, "text-anchor": anchor}
    look |= {"font-weight": "600" if bold else "400", "font-family": MONO if mono else SANS}
    element = ET.SubElement(page, "text", {"x": f"{x:g}", "y": f"{y:g}"} | look)
    words = clean(words)
    fits = int(room / (size * (MONO_EM if mono else BOLD_EM if bold else SANS_EM)))
    element.text = _cut(words, fits)
    if element.text != words:
        ET.SubElement(element, "title").text = words


def _cut(words: str, fits: int) -> str:
    """`words`, or their start with an ellipsis; an ideogram and an emoji take the room of two."""
    wide = [2 if east_asian_width(character) in "WF" else 1 for character in words]
    if sum(wide) <= fits:
        return words
    while wide and sum(wide) >= fits:
        wide.pop()
    return words[: len(wide)] + "…"


def clean(text: str) -> str:
    """`text` without what XML cannot hold, not even escaped."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def arrow(page: ET.Element, path: str) -> None:
    """A line along `path`, whose last step is one to a side or up or down, with a head on its end."""
    if page.find("marker") is None:
        shape = {"id": "arrow", "refY": "4", "markerWidth": "8", "markerHeight": "8", "orient": "auto"}
        page.insert(1, marker := ET.Element("marker", shape))
        ET.SubElement(marker, "path", {"d": "M0 0L8 4L0 8z", "fill": FAINT})
    ET.SubElement(page, "path", {"d": path, "fill": "none", "stroke": FAINT, "marker-end": "url(#arrow)"})


def line(page: ET.Element, path: str, colour: str, width: float) -> ET.Element:
    """A line along `path`, `width` pixels wide, with round ends, which it returns."""
    look = {"fill": "none", "stroke": colour, "stroke-width": f"{width:g}", "stroke-linecap": "round"}
    return ET.SubElement(page, "path", {"d": path} | look)
