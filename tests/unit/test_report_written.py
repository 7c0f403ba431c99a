"""Markdown, JSON and the markup of HTML: what needs no browser. tests/browser looks at the page."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import report_values as values

from sparkserve.bench import references
from sparkserve.bench.report import build, chart, markdown, page, plots
from sparkserve.bench.report.model import Report

if TYPE_CHECKING:
    from sparkserve.bench.results import Boot

SVG = "{http://www.w3.org/2000/svg}"


def hostile() -> Report:
    word = values.HOSTILE
    points = [values.point(word, n, [values.sample({"tps": 1.0 * n, "step_ms": 2.0})]) for n in (1, 2)]
    boot = values.boot(0, points, notes=(word,), id=word, memory={word: 1.0})
    subject = boot.subject.model_copy(update={"fleet": word, "model": word, "engine": {word: word}})
    boot = boot.model_copy(update={"subject": subject})
    result = values.result([boot], mode=word, machine={word: word}, settings={word: [word]})
    return build.build([(word, result)], {})


class Tags(HTMLParser):
    """The tags of a page, as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def rows(text: str, title: str) -> list[list[str]]:
    """The Markdown table below a line that begins with `title`."""
    below = text[text.index(f"\n**{title}") :].split("\n\n")[1]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in below.strip().splitlines()]


def test_markdown_table_has_the_figures() -> None:
    boots = [
        values.boot(
            i, [values.point("prose", 1, [values.sample({"decode_window_tps": tps, "step_ms": 30.0})])]
        )
        for i, tps in enumerate((88.0, 90.0, 92.0))
    ]
    reference = {"knapcio-v2.4": references.load("knapcio-v2.4")}
    text = markdown.markdown(build.build([("main", values.result(boots))], reference))
    # 90 and Student's interval over three boots with a standard deviation of 2: 4.303 x 2 / sqrt(3) = 4.968
    assert rows(text, "decode, tok/s") == [
        ["point", "main, tok/s", "knapcio v2.4, tok/s (published)"],
        ["---", "---:", "---:"],
        ["prose-c1", f"90.00 (85.03{chr(0x2013)}94.97)", "89.9"],
    ]
    assert "ms" in rows(text, "main, over 3 boots")[0][2]


def test_one_boot_is_marked_in_every_cell_and_at_the_top() -> None:
    text = markdown.markdown(build.build([("a", values.run(1, boots=1, cases=("prose",), lengths=()))], {}))
    assert "Every figure rests on one boot" in text.split("\n**a")[0]
    assert "The interval is of samples of one boot" in text
    cells = rows(text, "a, over 1 boot")[2][1:]
    assert all(cell.endswith("†)") for cell in cells)
    three = markdown.markdown(build.build([("a", values.run(1, cases=("prose",), lengths=()))], {}))
    assert "†" not in three


@pytest.mark.parametrize(
    "text", [values.HOSTILE, "a\n# b", "![x](http://h/i.png)", "<b>", "@name", "*a*", "$x$"]
)
def test_markdown_is_escaped(text: str) -> None:
    escaped = markdown.escape(text)
    assert "\n" not in escaped
    assert not re.search(r"(?<!\\)[`*_\[\]<>#|$]", escaped)
    assert "@" not in escaped
    assert "\u202e" not in escaped


def test_markdown_of_hostile_words_keeps_its_tables() -> None:
    text = markdown.markdown(hostile())
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


def test_html_of_hostile_words_has_only_our_tags() -> None:
    tags = Tags()
    text = page.html(hostile())
    tags.feed(text)
    assert not {tag for tag, _ in tags.seen} & {
        "script",
        "img",
        "iframe",
        "object",
        "link",
        "form",
        "a",
        "base",
    }
    assert not [name for _, attributes in tags.seen for name in attributes if name.startswith("on")]
    assert text.count("</style>") == 1
    assert "\u202e" not in text
    assert html.escape("<script>alert(", quote=False) in text


def test_html_refers_to_nothing() -> None:
    text = page.html(build.build([("a", values.run(1))], {n: references.load(n) for n in references.known()}))
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href|url\()\s*=?", text.replace("default-src", "").replace("style-src", ""))
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))


def test_json_is_of_its_schema_and_exact() -> None:
    report = build.build([("a", values.run(5, boots=2))], {"mia-tp3": references.load("mia-tp3")})
    text = report.model_dump_json(by_alias=True)
    jsonschema.validate(json.loads(text), Report.model_json_schema(by_alias=True))
    assert Report.model_validate_json(text) == report
    assert json.loads(text)["schema"] == "sparkserve.report/1"


def svgs(report: Report) -> dict[str, list[ET.Element]]:
    return {
        s.ident: [ET.fromstring(plot) for plot in s.plots]  # noqa: S314 - made here
        for s in plots.sections(report)
    }


def test_plots_have_titles_axes_and_words_for_who_does_not_see_them() -> None:
    found = svgs(build.build([("a", values.run(1))], {}))
    assert {name: len(each) for name, each in found.items()} == {
        **{"decode": 4, "step": 4, "prefill": 1, "itl": 4, "accepted": 4}
    }
    for name, each in found.items():
        for root in each:
            texts = [element.text for element in root.iter(f"{SVG}text")]
            assert root.get("role") == "img"
            assert root.findtext(f"{SVG}title")
            assert "a" in (root.findtext(f"{SVG}desc") or "")
            unit = {"step": "ms", "itl": "ms", "accepted": "accepted of verified drafts"}.get(name, "tok/s")
            assert unit in texts
            assert ("tokens of prompt" if name == "prefill" else "streams") in texts


def test_published_tables_are_drawn_apart_and_enter_no_figure() -> None:
    run = values.run(1, cases=("prose",), lengths=())
    alone, beside = (
        build.build([("a", run)], {}),
        build.build([("a", run)], {"mia-tp4": references.load("mia-tp4")}),
    )
    assert alone.arms == beside.arms
    assert alone.summaries == beside.summaries
    (plot,) = svgs(beside)["decode"]
    published = [g for g in plot.iter(f"{SVG}g") if g.get("class") == "published"]
    assert [g.get("data-name") for g in published] == ["Mia TP4"]
    marks = [float(m.get("data-y", "")) for m in published[0] if m.get("class") == "mark"]
    assert marks == [87.7, 120.4, 163.6, 237.6, 342.7]
    assert not [e for e in published[0] if "interval" in e.get("class", "") or e.get("class") == "boot"]
    assert "stroke-dasharray" in published[0][0].attrib


def test_prefill_is_beside_published_prefill_of_the_same_length() -> None:
    run = values.run(1, cases=(), lengths=(32768,))
    report = build.build([("a", run)], {"owen-r6-tp4": references.load("owen-r6-tp4")})
    (line,) = rows(markdown.markdown(report), "prefill, tok/s")[2:]
    assert line[0] == "novel-32768-c1"
    assert line[2] == "5,836 (real)"


def test_one_boot_has_a_dotted_bar_and_no_dots_of_boots() -> None:
    (plot,) = svgs(build.build([("a", values.run(1, boots=1, cases=("prose",), lengths=()))], {}))["decode"]
    classes = [element.get("class") for element in plot.iter()]
    assert "interval one-boot" in classes
    assert "interval" not in classes
    assert "boot" not in classes


def boot_of(value: float) -> Boot:
    return values.boot(0, [values.point("prose", n, [values.sample({"tps": value})]) for n in (1, 3)])


@pytest.mark.parametrize("value", [0.0, 1e-320, 1e-9, 1e14])
def test_odd_values_draw(value: float) -> None:
    (plot,) = svgs(build.build([("a", values.result([boot_of(value)]))], {}))["decode"]
    for element in plot.iter():
        assert "nan" not in element.get("d", "") + element.get("x", "") + element.get("y", "")


@pytest.mark.parametrize("top", [0.03, 0.99, 1.0, 7.0, 99.0, 102.3, 640.0, 5941.0, 1e-7, 3e9])
def test_ticks_are_few_and_round(top: float) -> None:
    ticks = chart._nice(top)
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert top * 0.6 < ticks[-1] <= top * (1 + 1e-9)
