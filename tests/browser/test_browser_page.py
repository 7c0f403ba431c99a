"""A report's page as somebody sees it: its figures, its tables, its colours, and nothing else."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
import report_values as values
from browser import HEIGHT, Box
from browser_reports import LONG, REPORTS

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytest_plugins = ("browser_fixtures",)
WIDTHS = (1280, 390)
VISIBLE = values.HOSTILE.replace(
    "\u202e", "\ufffd"
)  # what turns a text around is shown as what it is: nothing


@pytest.mark.parametrize("width", WIDTHS)
def test_the_summary_is_on_the_first_screen(chromium: Browser, files: dict[str, Path], width: int) -> None:
    chromium.show(files["one"], width=width)
    figure = REPORTS["one"]().arms[0].rows[0].figures["decode_window_tps"]
    tile = chromium.items(".tile")[0]
    assert tile.box.bottom < HEIGHT
    # Computed again from what the run holds: the mean of its boots.
    means = [
        sum(s.metrics["decode_window_tps"] for s in boot.points["prose-c1"].samples) / 4
        for boot in values.run(1).boots
    ]
    assert sum(means) / 3 == pytest.approx(figure.mean)
    shown = chromium.items(".tile b")[0].text
    assert shown == f"{sum(means) / 3:.2f} tok/s"
    assert "prose-c1" in tile.text
    assert f"{figure.low:.2f}" in tile.text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_beyond_the_page(chromium: Browser, files: dict[str, Path], name: str, width: int) -> None:
    chromium.show(files[name], width=width)
    assert chromium.width() == width
    for item in chromium.items("td, tbody th, caption, figure, .plot, .tile, li, p, dd, h1, h2, h3"):
        assert item.box.left >= 0, item
        assert item.box.right <= width, item


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["two", "hostile"])
def test_every_cell_is_readable(chromium: Browser, files: dict[str, Path], name: str, width: int) -> None:
    chromium.show(files[name], width=width)
    cells = chromium.items("tbody td, tbody th")
    assert len(cells) > 20
    assert all(cell.box.right - cell.box.left > 20 and cell.box.bottom - cell.box.top > 10 for cell in cells)
    # The text of a cell is inside it, and so over no other.
    inside = chromium.items("tbody td > *, tbody th > *")
    boxes = sorted((cell.box for cell in cells), key=lambda box: box.top)
    for item in inside:
        around = [b for b in boxes if b.left - 1 <= item.box.left and item.box.right <= b.right + 1]
        assert any(b.top - 1 <= item.box.top and item.box.bottom <= b.bottom + 1 for b in around), item


def test_narrow_tables_name_each_figure(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"], width=390)
    labels = {item.data["label"] for item in chromium.items(".wide td")}
    assert {"step, ms", "ITL p99, ms", "first token, s"} <= labels
    shown = chromium.pseudo(".wide td", "::before")
    assert "decode, tok/s" in shown
    chromium.show(files["one"], width=1280)
    assert chromium.pseudo(".wide td", "::before") == "none"
    heads = [item.text for item in chromium.items(".wide thead th")]
    assert any(head.startswith("ITL p99") for head in heads)


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["two", "one-boot"])
def test_contrast(chromium: Browser, files: dict[str, Path], name: str, scheme: str) -> None:
    chromium.show(files[name], scheme=scheme)
    assert (luminance(chromium.style("body", "backgroundColor")) < 0.1) == (scheme == "dark")
    found = chromium.colours()
    assert len(found) > 5
    for pair, text in found.items():
        colour, behind = pair.split("|")
        assert contrast(colour, behind) >= 4.5, (text, pair)
    card = chromium.style("figure", "backgroundColor")
    for mark in chromium.items(".plot .arm .mark"):
        assert contrast(mark.stroke, card) >= 3, mark


def test_arms_differ_by_shape_and_by_light_for_who_sees_no_colour(
    chromium: Browser, files: dict[str, Path]
) -> None:
    chromium.show(files["two"])
    shapes = {
        kind: {item.shape for item in chromium.items(f"#plots .plot .{kind} .mark")} for kind in ("c0", "c1")
    }
    for one, other in combinations(shapes.values(), 2):
        assert one
        assert not one & other


@pytest.mark.parametrize("name", REPORTS)
def test_quiet(chromium: Browser, files: dict[str, Path], name: str) -> None:
    chromium.show(files[name])
    assert chromium.items("h1")
    assert chromium.complaints() == []
    assert chromium.requests() == []
    assert not chromium.scripts()


def test_hostile_words_are_text(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["hostile"])
    words = " ".join(VISIBLE.split())
    shown = [" ".join(item.text.split()) for item in chromium.items("bdi, dd, li")]
    assert words in shown  # the arm's name, alone
    assert f"{words}-c1" in shown
    assert f"{words}, boot {words}: {words}" in shown  # a note
    assert LONG in shown
    # The page goes on behind them, in its own style.
    assert chromium.items("footer")[0].text.startswith("Made by sparkserve")
    assert chromium.items(".tile")
    # A name that turns text around turns nothing outside of itself.
    captions = [item.text for item in chromium.items("caption")]
    assert f"{words}, over 1 boot" in [" ".join(text.split()) for text in captions]


def test_one_boot_is_said_before_any_figure(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one-boot"])
    (warning,) = (item for item in chromium.items(".warnings") if "rests on one boot" in item.text)
    plots = min(item.box.top for item in chromium.items(".plot"))
    assert warning.box.bottom < plots
    assert warning.box.top < HEIGHT
    chromium.show(files["one"])
    assert not [item for item in chromium.items(".warnings") if "one boot." in item.text]


def test_published_is_told_apart(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["one"])
    heads = chromium.items("#tables th.published")
    assert {"knapcio v2.4", "owen r6 TP4"} <= {head.text.splitlines()[0] for head in heads}
    assert chromium.style("#tables td.published", "fontStyle") == "italic"
    assert chromium.style("#tables td:not(.published)", "fontStyle") == "normal"
    legend = [item.text for item in chromium.items(".legend li")]
    assert [text.split()[-1] for text in legend[1:]] == ["published"] * 2
    assert "no statistic" in chromium.items("#plots")[0].text


def test_empty_says_so(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["empty"])
    assert "There is nothing to report" in chromium.items(".warnings")[0].text
    assert not chromium.items(".plot")
    assert not chromium.items(".legend")


def test_failed_points_are_shown_as_such(chromium: Browser, files: dict[str, Path]) -> None:
    chromium.show(files["hostile"])
    assert "failed, at failed-c4" in chromium.items(".warnings")[0].text
    row = next(item for item in chromium.items("tbody tr") if item.text.startswith("failed-c4"))
    assert row.text.splitlines()[-1].split()[-1] == chr(0x2013)


def overlap(one: Box, other: Box) -> bool:
    """By more than a pixel of rounding."""
    across = min(one.right, other.right) - max(one.left, other.left)
    return across > 1 and min(one.bottom, other.bottom) - max(one.top, other.top) > 1


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["two", "one-sample", "hostile"])
def test_blocks_are_not_over_each_other(
    chromium: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    chromium.show(files[name], width=width)
    blocks = chromium.items(".tile, figure, .legend, .warnings, table, h2, h3")
    assert len(blocks) > 5
    for one, other in combinations(blocks, 2):
        assert not overlap(one.box, other.box), (one, other)
