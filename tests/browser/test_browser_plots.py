"""Plots as drawn: each point is where its value is between the axis's ticks, and no text is over another."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from conftest import REPORTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from browser import Browser, Item

PIXEL = 0.75  # boxes are of outlines, whose ends are rounded to hundredths


def scale(ticks: list[Item], name: str, side: str, by: Callable[[float], float]) -> Callable[[float], float]:
    """From a value to a pixel, by the two ticks that are farthest apart."""
    places = sorted((by(tick.value(name)), getattr(tick.box, side)) for tick in ticks)
    (low, start), (high, end) = places[0], places[-1]
    if high == low:
        return lambda _: start
    return lambda value: start + (by(value) - low) / (high - low) * (end - start)


def identity(value: float) -> float:
    return value


def plots(chromium: Browser) -> int:
    return len(chromium.items(".plot"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["one", "one-sample", "one-boot"])
def test_points_are_where_their_values_are(
    chromium: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    chromium.show(files[name], width=width)
    checked = 0
    for i in range(plots(chromium)):
        y = scale(chromium.items("[data-tick-y]", ".plot", i), "tickY", "y", identity)
        x = scale(chromium.items("[data-tick-x]", ".plot", i), "tickX", "x", math.log2)
        for mark in chromium.items(".mark", ".plot", i):
            assert mark.box.y == pytest.approx(y(mark.value("y")), abs=PIXEL), mark
            assert mark.box.x == pytest.approx(x(mark.value("x")), abs=PIXEL), mark
            checked += 1
        for dot in chromium.items(".boot", ".plot", i):
            assert dot.box.y == pytest.approx(y(dot.value("y")), abs=PIXEL), dot
    assert checked >= (1 if name == "one-sample" else 80)


def test_ticks_are_labelled_with_their_values(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    for i in range(plots(chromium)):
        texts = chromium.items("text", ".plot", i)
        for tick in chromium.items("[data-tick-y]", ".plot", i):
            beside = [t for t in texts if t.box.right < tick.box.left and abs(t.box.y - tick.box.y) < 5]
            assert [float(t.text.replace(",", "")) for t in beside] == [pytest.approx(tick.value("tickY"))]


def test_marks_have_the_values_of_the_report(chromium: Browser, files: dict[str, Path]) -> None:
    report = REPORTS["one"]()
    chromium.show(files["one"])
    heading = [item.text for item in chromium.items("#plots h3")]
    assert heading == ["Decode", "Step", "Prefill", "Time between tokens", "Acceptance"]
    first = [mark.value("y") for mark in chromium.items(".arm .mark", ".plot", 0)]
    wanted = [row.figures["decode_window_tps"] for row in report.arms[0].rows if row.case == "prose"]
    assert first == pytest.approx([figure.mean for figure in wanted])
    dots = [dot.value("y") for dot in chromium.items(".arm .boot", ".plot", 0)]
    assert dots == pytest.approx([boot for figure in wanted for boot in figure.boots])


def test_intervals_are_drawn_from_low_to_high(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    for i in range(plots(chromium)):
        y = scale(chromium.items("[data-tick-y]", ".plot", i), "tickY", "y", identity)
        bars = chromium.items(".arm .interval", ".plot", i)
        assert len(bars) == len(chromium.items(".arm .mark", ".plot", i))
        for bar in bars:
            assert bar.box.top == pytest.approx(y(bar.value("high")), abs=PIXEL), bar
            assert bar.box.bottom == pytest.approx(y(bar.value("low")), abs=PIXEL), bar
            assert bar.stroke != "none"
        assert not chromium.items(".published .interval, .published .boot", ".plot", i)


def test_intervals_of_one_boot_look_otherwise(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one-boot"])
    assert chromium.style(".interval", "strokeDasharray") != "none"
    assert not chromium.items(".boot")
    chromium.show(files["one"])
    assert chromium.style(".interval", "strokeDasharray") == "none"


def test_arms_at_one_value_do_not_hide_each_other(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["two"])
    for i in range(4):
        one, other = (chromium.items(f".{arm} .mark", ".plot", i) for arm in ("c0", "c1"))
        for left, right in zip(one, other, strict=True):
            assert left.value("x") == right.value("x")
            assert left.box.right < right.box.left + 1
            # Both still at their tick: nearer to it than to the next one.
            ticks = list(chromium.items("[data-tick-x]", ".plot", i))
            for mark in (left, right):
                nearest = min(ticks, key=lambda tick: abs(tick.box.x - mark.box.x))
                assert nearest.value("tickX") == mark.value("x")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["one", "two", "hostile", "many"])
def test_no_text_is_over_another_or_outside(
    chromium: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    chromium.show(files[name], width=width)
    frames = chromium.items(".plot")
    assert frames
    for i, frame in enumerate(frames):
        texts = chromium.items("text", ".plot", i)
        assert len(texts) > 4
        for one, other in combinations(texts, 2):
            across = min(one.box.right, other.box.right) - max(one.box.left, other.box.left)
            down = min(one.box.bottom, other.box.bottom) - max(one.box.top, other.box.top)
            # A line's box is higher than its letters.
            assert across <= 0 or down <= 4, (one, other)
        for text in texts:
            assert frame.box.left <= text.box.left, text
            assert text.box.right <= frame.box.right, text


def test_marks_are_over_no_text(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["two"])
    for i in range(plots(chromium)):
        texts = chromium.items("text", ".plot", i)
        for mark in chromium.items(".mark", ".plot", i):
            for text in texts:
                apart = mark.box.right <= text.box.left or text.box.right <= mark.box.left
                assert apart or mark.box.bottom <= text.box.top + 3 or text.box.bottom - 3 <= mark.box.top, (
                    text
                )


def test_letters_are_beside_published_lines_and_in_the_legend(
    chromium: Browser, files: dict[str, Path]
) -> None:
    chromium.show(files["two"])
    legend = [item.text.split(maxsplit=1) for item in chromium.items(".legend li.published")]
    assert [letter for letter, _ in legend] == list("ABCDEFGH")
    for i in range(plots(chromium)):
        drawn = {text.text for text in chromium.items(".published text", ".plot", i)}
        lines = chromium.items(".published", ".plot", i)
        assert len(drawn) == len(lines)
        for line in lines:
            letter = next(letter for letter, name in legend if name.startswith(f"{line.data['name']},"))
            assert letter in drawn


def test_every_plot_is_described_for_who_does_not_see_it(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    for name, words in chromium.accessible(".plot"):
        assert " by " in name
        assert "main" in words
