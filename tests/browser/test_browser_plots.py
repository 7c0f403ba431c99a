"""Plots as drawn: each point is where its value is between the axis's ticks, and no text is over another."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from browser_reports import REPORTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from browser import Browser, Item

pytest_plugins = ("browser_fixtures",)
PIXEL = 0.75  # boxes are of outlines, whose ends are rounded to hundredths
LETTERS = 4  # a line's box is that much higher than its letters


def scale(ticks: list[Item], name: str, side: str, by: Callable[[float], float]) -> Callable[[float], float]:
    """From a value to a pixel, by the two ticks that are farthest apart."""
    places = sorted((by(tick.value(name)), getattr(tick.box, side)) for tick in ticks)
    (low, start), (high, end) = places[0], places[-1]
    if high == low:
        return lambda _: start
    return lambda value: start + (by(value) - low) / (high - low) * (end - start)


def axes(
    chromium: Browser,
) -> Iterator[tuple[Callable[[float], float], Callable[[float], float]]]:
    """For each plot, from a value to a pixel: across and down."""
    for x, y in zip(chromium.plots("[data-tick-x]"), chromium.plots("[data-tick-y]"), strict=True):
        yield scale(x, "tickX", "x", math.log2), scale(y, "tickY", "y", float)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["one", "one-sample", "one-boot"])
def test_points_are_where_their_values_are(
    chromium: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    chromium.show(files[name], width=width)
    found = chromium.plots(".mark"), chromium.plots(".boot")
    for (x, y), marks, dots in zip(axes(chromium), *found, strict=True):
        assert marks
        for mark in marks:
            assert mark.box.y == pytest.approx(y(mark.value("y")), abs=PIXEL), mark
            assert mark.box.x == pytest.approx(x(mark.value("x")), abs=PIXEL), mark
        for dot in dots:
            assert dot.box.y == pytest.approx(y(dot.value("y")), abs=PIXEL), dot


def test_ticks_are_labelled_with_their_values(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    for texts, ticks in zip(chromium.plots("text"), chromium.plots("[data-tick-y]"), strict=True):
        for tick in ticks:
            beside = [t for t in texts if t.box.right < tick.box.left and abs(t.box.y - tick.box.y) < 5]
            assert [float(t.text.replace(",", "")) for t in beside] == [pytest.approx(tick.value("tickY"))]


def test_marks_have_the_values_of_the_report(chromium: Browser, files: dict[str, Path]) -> None:
    report = REPORTS["one"]()
    chromium.show(files["one"])
    heading = [item.text for item in chromium.items("#plots h3")]
    assert heading == ["Decode", "Step", "Prefill", "Time between tokens", "Acceptance"]
    wanted = [row.figures["decode_window_tps"] for row in report.arms[0].rows if row.case == "prose"]
    marks = chromium.plots(".arm .mark")[0]
    assert [mark.value("y") for mark in marks] == pytest.approx([figure.mean for figure in wanted])
    assert [mark.value("x") for mark in marks] == [1, 2, 4, 8, 16]
    dots = [dot.value("y") for dot in chromium.plots(".arm .boot")[0]]
    assert dots == pytest.approx([boot for figure in wanted for boot in figure.boots])


def test_intervals_are_drawn_from_low_to_high(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    found = chromium.plots(".arm .interval"), chromium.plots(".arm .mark")
    for (_, y), bars, marks in zip(axes(chromium), *found, strict=True):
        assert len(bars) == len(marks)
        for bar in bars:
            assert bar.box.top == pytest.approx(y(bar.value("high")), abs=PIXEL), bar
            assert bar.box.bottom == pytest.approx(y(bar.value("low")), abs=PIXEL), bar
            assert bar.stroke != "none"
    assert not chromium.items(".published .interval, .published .boot")


def test_intervals_of_one_boot_look_otherwise(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one-boot"])
    assert chromium.style(".interval", "strokeDasharray") != "none"
    assert not chromium.items(".boot")
    chromium.show(files["one"])
    assert chromium.style(".interval", "strokeDasharray") == "none"


def test_arms_at_one_value_do_not_hide_each_other(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["two"])
    found = (chromium.plots(selector) for selector in (".c0 .mark", ".c1 .mark", "[data-tick-x]"))
    for one, other, ticks in zip(*found, strict=True):
        for left, right in zip(one, other, strict=True):
            assert left.value("x") == right.value("x")
            assert left.box.x + 5 < right.box.x
            # Both still at their tick: nearer to it than to the next one.
            for mark in (left, right):
                nearest = min(ticks, key=lambda tick: abs(tick.box.x - mark.box.x))
                assert nearest.value("tickX") == mark.value("x")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["one", "two", "hostile", "many", "fast"])
def test_no_text_is_over_another_or_outside(
    chromium: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    chromium.show(files[name], width=width)
    frames = chromium.items(".plot")
    assert frames
    for frame, texts in zip(frames, chromium.plots("text"), strict=True):
        assert len(texts) > 4
        for one, other in combinations(texts, 2):
            across = min(one.box.right, other.box.right) - max(one.box.left, other.box.left)
            down = min(one.box.bottom, other.box.bottom) - max(one.box.top, other.box.top)
            assert across <= 0 or down <= LETTERS, (one, other)
        for text in texts:
            assert frame.box.left <= text.box.left, text
            assert text.box.right <= frame.box.right, text


def test_marks_are_over_no_text(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["two"])
    for texts, marks in zip(chromium.plots("text"), chromium.plots(".mark"), strict=True):
        for mark in marks:
            for text in texts:
                apart = mark.box.right <= text.box.left or text.box.right <= mark.box.left
                above = mark.box.bottom <= text.box.top + LETTERS
                assert apart or above or text.box.bottom - LETTERS <= mark.box.top, text


def test_letters_are_beside_published_lines_and_in_the_legend(
    chromium: Browser, files: dict[str, Path]
) -> None:
    chromium.show(files["two"])
    legend = [item.text.split(maxsplit=1) for item in chromium.items(".legend li.published")]
    assert [letter for letter, _ in legend] == list("ABCDEFGH")
    for texts, lines in zip(chromium.plots(".published text"), chromium.plots(".published"), strict=True):
        assert len(texts) == len(lines)
        drawn = {text.text for text in texts}
        for line in lines:
            letter = next(letter for letter, name in legend if name.startswith(f"{line.data['name']},"))
            assert letter in drawn


def test_every_plot_is_described_for_who_does_not_see_it(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    described = chromium.described()
    assert len(described) == len(chromium.items(".plot"))
    assert described[0][0] == "prose: tok/s by streams"
    for name, words in described:
        assert " by " in name
        assert "main" in words
