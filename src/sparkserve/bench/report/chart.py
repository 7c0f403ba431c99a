"""One plot as SVG: arms with intervals and the dots of their boots, and published tables told apart.

Colours come from the page's style sheet, which has a set for light and one for dark: an arm is of class `c0`
to `c5`, a published table of class `published`. Each arm has a shape of its own too, for eyes and printers
that see no colours. What a browser's test reads is in `data-` attributes.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from sparkserve.fleet import svg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WIDTH, HEIGHT = 330, 262
LEFT, RIGHT, TOP, BOTTOM = 50, 36, 54, 218
EDGE = 20  # between an axis and the first or last value
NOTE = 13  # between two labels at the right
COLOURS = 6
_R = 4.2
SHAPES: tuple[str, ...] = (
    f"m-{_R} 0a{_R} {_R} 0 1 0 {2 * _R} 0a{_R} {_R} 0 1 0 -{2 * _R} 0z",  # circle
    f"m-{_R} -{_R}h{2 * _R}v{2 * _R}h-{2 * _R}z",  # square
    f"m0 -{_R + 1.4}l{_R + 1.4} {_R + 1.4}l-{_R + 1.4} {_R + 1.4}l-{_R + 1.4} -{_R + 1.4}z",  # diamond
    f"m0 -{_R + 1}l{_R + 1} {2 * _R}h-{2 * _R + 2}z",  # triangle
    f"m0 {_R + 1}l{_R + 1} -{2 * _R}h-{2 * _R + 2}z",  # triangle, point down
)
INK, FAINT, RULE, PAPER = "var(--ink)", "var(--faint)", "var(--rule)", "var(--card)"


class Mark(NamedTuple):
    """A value at `x`, its interval from `low` to `high`, and the boots' means. `said` is for a pointer."""

    x: float
    y: float
    said: str
    low: float | None = None
    high: float | None = None
    one_boot: bool = False  # the interval is of one boot's samples: dashed
    dots: tuple[float, ...] = ()


class Series(NamedTuple):
    """Marks of one arm, or of a published table when `arm` is None. `label` stands at its right end."""

    name: str
    arm: int | None
    marks: tuple[Mark, ...]
    label: str = ""
    hollow: bool = False


class Frame(NamedTuple):
    """What is around the marks. `x_ticks` are values and their texts; the y axis starts at 0."""

    title: str
    x_name: str
    y_name: str
    x_ticks: tuple[tuple[float, str], ...]
    top: float | None = None  # the y axis ends here; None: where the values do


def draw(ident: str, frame: Frame, series: Sequence[Series]) -> str:
    """The SVG element. `ident` is unique on its page."""
    page = svg.page(f"{frame.title}: {frame.y_name} by {frame.x_name}")
    page[0].set("id", f"{ident}-title")
    page.insert(1, said := ET.Element("desc", {"id": f"{ident}-desc"}))
    said.text = svg.clean(" ".join(f"{s.name}: {'; '.join(m.said for m in s.marks)}." for s in series))
    page.attrib |= {"aria-labelledby": f"{ident}-title", "aria-describedby": f"{ident}-desc", "class": "plot"}
    svg.text(page, 10, 22, frame.title, WIDTH - 20, size=15, bold=True, colour=INK)
    x = _x_axis(page, frame)
    y = _y_axis(page, frame, series)
    arms = sorted({s.arm for s in series if s.arm is not None})
    ends = []
    # Published tables first: a run of ours is never under them.
    for each in sorted(series, key=lambda s: s.arm is not None):
        shift = 0.0 if each.arm is None else _shift(arms.index(each.arm), len(arms), frame, x)
        group = _series(page, each, x, y, shift)
        if each.label and each.marks:
            ends.append((y(each.marks[-1].y), x(each.marks[-1].x) + shift, each, group))
    _labels(ends)
    for element in page.iter("text"):
        del element.attrib["font-family"]  # the page's style sheet has it, once
    return svg.finish(page, WIDTH, HEIGHT)


def _x_axis(page: ET.Element, frame: Frame) -> Callable[[float], float]:
    """Draw it; powers of two are at equal distances."""
    logs = [math.log2(value) for value, _ in frame.x_ticks]
    first, room = min(logs), WIDTH - LEFT - RIGHT - 2 * EDGE
    wide = max(logs) - first

    def place(value: float) -> float:
        part = (math.log2(value) - first) / wide if wide else 0.5
        return LEFT + EDGE + part * room

    _tick(page, f"M{LEFT} {BOTTOM}H{WIDTH - RIGHT}", INK)
    free = 0.0
    for value, words in frame.x_ticks:
        at, half = place(value), 4.0 * len(words)
        _tick(page, f"M{at:.2f} {BOTTOM}v5", INK, x=value)
        if at - half >= free:
            svg.text(page, at, BOTTOM + 19, words, 60, size=12, anchor="middle", colour=FAINT)
            free = at + half + 4
    middle = (LEFT + WIDTH - RIGHT) / 2
    svg.text(page, middle, BOTTOM + 37, frame.x_name, 240, size=12, anchor="middle", colour=FAINT)
    return place


def _y_axis(page: ET.Element, frame: Frame, series: Iterable[Series]) -> Callable[[float], float]:
    """Draw it from 0, so that a small difference looks small."""
    marks = [mark for each in series for mark in each.marks]
    seen = max(max(mark.y, *mark.dots) if mark.dots else mark.y for mark in marks)
    # An interval over two boots can be wider than all that was measured: it is cut, and the table has it.
    widest = max((mark.high for mark in marks if mark.high is not None), default=seen)
    top = frame.top or max(seen, min(widest, 1.5 * seen)) * 1.04
    top = top if top > 1e-12 else 1.0
    svg.text(page, 10, 42, frame.y_name, 240, size=12, colour=FAINT)

    def place(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * min(max(value / top, 0.0), 1.0)

    for value in _nice(top):
        _tick(page, f"M{LEFT} {place(value):.2f}H{WIDTH - RIGHT}", RULE if value else INK, y=value)
        svg.text(page, LEFT - 7, place(value) + 4, _short(value), LEFT, size=12, anchor="end", colour=FAINT)
    return place


def _nice(top: float) -> list[float]:
    """Four to seven round values from 0 up to `top`."""
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0) if top / (unit * part) < 7)
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def _short(value: float) -> str:
    """The text of a tick: as short as it can be."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * unit:
            return f"{value / unit:.4g}{sign}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _tick(page: ET.Element, path: str, colour: str, **data: float) -> None:
    element = svg.line(page, path, colour, 1)
    element.attrib |= {f"data-tick-{key}": repr(value) for key, value in data.items()}


def _shift(i: int, arms: int, frame: Frame, x: Callable[[float], float]) -> float:
    """Pixels to the side, so that arms at one value do not hide each other."""
    places = sorted(x(value) for value, _ in frame.x_ticks)
    nearest = min((b - a for a, b in pairwise(places)), default=60.0)
    return (i - (arms - 1) / 2) * min(15.0, 0.8 * min(nearest, 2 * EDGE) / arms)


def _series(
    page: ET.Element,
    series: Series,
    x: Callable[[float], float],
    y: Callable[[float], float],
    shift: float,
) -> ET.Element:
    published = series.arm is None
    kind = "published" if series.arm is None else f"arm c{series.arm % COLOURS}"
    group = ET.SubElement(page, "g", {"class": kind, "data-name": svg.clean(series.name)})
    points = [f"{x(mark.x) + shift:.2f} {y(mark.y):.2f}" for mark in series.marks]
    if len(points) > 1:
        path = svg.line(group, "M" + "L".join(points), "currentColor", 1.3 if published else 1.8)
        path.attrib |= {"stroke-dasharray": "5 4"} if published else {"stroke-opacity": "0.65"}
    for mark in series.marks:
        if mark.low is not None and mark.high is not None:
            _interval(group, mark, x(mark.x) + shift, y)
    aside = -7.5 if shift < 0 else 7.5  # of the dots: away from the arm at the other side
    shape = SHAPES[(series.arm or 0) % len(SHAPES)]
    for mark, point in zip(series.marks, points, strict=True):
        look = {"fill": PAPER if published or series.hollow else "currentColor", "stroke": "currentColor"}
        data = {"class": "mark", "data-x": f"{mark.x:.9g}", "data-y": f"{mark.y:.9g}", "stroke-width": "1.4"}
        element = ET.SubElement(group, "path", {"d": f"M{point}{shape}"} | look | data)
        ET.SubElement(element, "title").text = svg.clean(f"{series.name}: {mark.said}")
        for dot in mark.dots if len(mark.dots) > 1 else ():
            place = {"cx": f"{x(mark.x) + shift + aside:.2f}", "cy": f"{y(dot):.2f}", "r": "2"}
            look = {"class": "boot", "data-y": f"{dot:.9g}", "fill": "currentColor"}
            ET.SubElement(group, "circle", place | look)
    return group


def _interval(group: ET.Element, mark: Mark, x: float, y: Callable[[float], float]) -> None:
    assert mark.low is not None and mark.high is not None  # noqa: S101 - the caller looked
    low, high = y(mark.low), y(mark.high)
    caps = f"M{x - 4:.2f} {high:.2f}h8M{x - 4:.2f} {low:.2f}h8"
    path = svg.line(
        group, f"M{x:.2f} {high:.2f}V{low:.2f}" + ("" if mark.one_boot else caps), "currentColor", 1.4
    )
    path.set("class", "interval one-boot" if mark.one_boot else "interval")
    path.attrib |= {"data-low": f"{mark.low:.9g}", "data-high": f"{mark.high:.9g}"}
    if mark.one_boot:
        path.set("stroke-dasharray", "2 3")


def _labels(ends: list[tuple[float, float, Series, ET.Element]]) -> None:
    """Name series at their right ends, a line each; none where there is no room for all."""
    if len(ends) > (BOTTOM - TOP) // NOTE:
        return
    ends = sorted(ends, key=lambda end: end[0])
    places: list[float] = []
    for i, (y, *_) in enumerate(ends):
        least = places[-1] + NOTE if places else TOP + 2.0
        places.append(min(max(y, least), BOTTOM - NOTE * (len(ends) - 1 - i)))
    left = WIDTH - RIGHT + 9
    for at, (y, x, series, group) in zip(places, ends, strict=True):
        line = svg.line(group, f"M{x + 11:.2f} {y:.2f}L{left - 3} {at:.2f}", "currentColor", 0.8)
        line.set("stroke-opacity", "0.5")
        svg.text(group, left, at + 4, series.label, RIGHT - 8, size=11, bold=True, colour="currentColor")
