"""`sparkserve memory explain`: tables, JSON and picture of plans, without Nix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from sparkserve import nix, plan
from sparkserve.cli.main import main
from sparkserve.fleet import names, plans
from sparkserve.memory import draw, explain

ROOT = Path(__file__).parents[2]
GIB = 1 << 30


def values(fleet: str) -> dict[str, Any]:
    return {
        file.stem: json.loads(file.read_text()) for file in sorted((ROOT / "tests/golden" / fleet).glob("*"))
    }


def parsed(fleet: str) -> list[plan.Plan]:
    return [plan.parse(value) for value in values(fleet).values()]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """What Nix is asked for; the golden plans are the answer."""
    calls: list[tuple[str, str | None]] = []

    def eval_json(attribute: str, apply: str | None = None) -> Any:
        calls.append((attribute, apply))
        return values(attribute.split(".")[2])

    monkeypatch.setattr(nix, "eval_json", eval_json)
    monkeypatch.setattr(names, "require_tracked", lambda name: None)
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(ROOT))
    return calls


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["memory", "explain", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, *capsys.readouterr()


def test_equal_nodes_are_one_and_the_head_is_its_own() -> None:
    assert [each.nodes for each in explain.collect(parsed("tp4-switched"))] == [
        ("spark-0",),
        ("spark-1", "spark-2", "spark-3"),
    ]


def test_the_rows_add_up_to_the_memory_of_a_spark() -> None:
    for fleet in ("tp3-triangle", "tp4-ring", "tp4-switched"):
        for each in explain.collect(parsed(fleet)):
            *terms, start, serve = explain.rows(each)
            numbers = {row[0]: int(row[2].replace(",", "")) for row in terms}
            assert sum(numbers.values()) == int(serve[2].replace(",", ""))
            assert numbers["experts"] > 0.5 * 121.7 * GIB
            until, worst = explain.left(each.memory)
            assert start[2] == f"{until.sum:,}"
            assert worst.sum + worst.left == each.memory.pool_bytes
            assert f"{worst.left / GIB:.2f} GiB left" in serve[5]
            # A fleet of this repository fits.
            assert until.above >= 0 and worst.above >= 0


def test_a_table_names_nodes_terms_and_reasons(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "tp3-triangle")
    assert code == 0
    assert asked == [("lib.fleets.tp3-triangle.plans", None)]
    assert [line.split("  ")[0] for line in out.splitlines() if " GiB " in line and "bytes" in line] == [
        "spark-0",
        "spark-1, spark-2",
    ]
    assert "tokenizer, HTTP and detokenizer" in out
    only = run(capsys, "tp3-triangle", "--node", "spark-2")[1]
    assert only.splitlines()[0].startswith("spark-2 ")
    assert "tokenizer" not in only


def test_json_is_what_the_plan_says(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "tp4-switched", "--json")
    assert code == 0
    assert json.loads(out) == {node: value["memory"] for node, value in values("tp4-switched").items()}


def test_other_values_go_through_nix_as_they_are(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = 'a"b\\${x}$$ é'
    code, _, _ = run(
        capsys, "tp3-triangle", "--set", "engine.prefillChunk=256", "--set", f"engine.env.X={odd}"
    )
    assert code == 0
    [(attribute, apply)] = asked
    assert attribute == "lib.fleets.tp3-triangle.but"
    assert apply is not None
    # A string of Nix, as Nix reads it: no dollar is left that could begin an expression.
    literal = apply.removeprefix("but: but (builtins.fromJSON ").removesuffix(")")
    assert "$" not in literal.replace("\\$", "")
    assert json.loads(json.loads(literal.replace("\\$", "$"))) == [
        {"option": ["engine", "prefillChunk"], "value": 256},
        {"option": ["engine", "env", "X"], "value": odd},
    ]


@pytest.mark.parametrize(
    "text", ["engine.maxRunning", "=3", "engine..x=3", ".x=3", " engine.x=1", "engine.x =1"]
)
def test_a_setting_without_option_or_value_is_refused(
    text: str, asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "tp3-triangle", "--set", text)
    assert code == 2
    assert "such as engine.prefillChunk=1024" in err
    assert asked == []


@pytest.mark.parametrize("text", ["assertions=[]", "_module.args=1", "node.rank=1", "node=1"])
def test_rules_and_nodes_are_not_settings(
    text: str, asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "tp3-triangle", "--set", text)
    assert code == 2
    assert "is no option of a fleet" in err
    assert asked == []


def test_a_laptop_has_nothing_to_explain(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "local-triangle")
    assert (code, out) == (30, "")
    assert "smollm2-135m" in err
    assert "memory explain tp3-triangle" in err


def test_an_unknown_node_gets_the_known_ones(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "tp3-triangle", "--node", "spark-9")
    assert code == 33
    assert "spark-0, spark-1, spark-2" in err


def bars(text: str) -> list[list[tuple[float, float]]]:
    """The parts of each bar as (x, width)."""
    root = ET.fromstring(text)  # noqa: S314 - made here
    found: dict[str, list[tuple[float, float]]] = {}
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        if rect.get("height") == f"{draw.BAR:g}":
            found.setdefault(rect.attrib["y"], []).append(
                (float(rect.attrib["x"]), float(rect.attrib["width"]))
            )
    return list(found.values())


def test_a_bar_has_its_parts_side_by_side_and_to_scale() -> None:
    shared = explain.collect(parsed("tp4-switched"))
    drawn = bars(draw.draw("tp4-switched", shared))
    assert len(drawn) == 2
    for each, (whole, *parts) in zip(shared, drawn, strict=True):
        assert len(parts) == len(each.memory.terms)
        x = whole[0]
        for term, (left, width) in zip(each.memory.terms, parts, strict=True):
            assert left == pytest.approx(x, abs=0.01)
            assert width / whole[1] == pytest.approx(term.bytes / each.memory.pool_bytes, rel=0.01, abs=1e-5)
            x += width
        assert x <= whole[0] + whole[1]


def test_the_picture_is_written_and_the_one_in_the_docs_is_of_today(
    asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, _ = run(capsys, "tp4-switched", "--output", str(tmp_path / "memory.svg"))
    assert code == 0
    assert (tmp_path / "memory.svg").read_text() == (ROOT / "docs/memory.svg").read_text()


def test_without_a_guard_nothing_is_said_to_kill() -> None:
    free = [each.model_copy(update={"guard": None}) for each in parsed("tp3-triangle")]
    found = explain.collect([*free[:2], *parsed("tp3-triangle")[2:]])
    assert [each.nodes for each in found] == [("spark-0",), ("spark-1",), ("spark-2",)]
    said = [[row[5] for row in explain.rows(each) if row[0] == "sum"] for each in found]
    for words in said[0] + said[1]:
        assert "guard.enable is false" in words and "the guard kills" not in words
    assert all("the guard kills" in words for words in said[2])
    assert "the guard kills" not in draw.draw("x", found[:2])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in ("NaN", "-Infinity", "[NaN]", "1e400", "1e30", "[" * 100_000, "many")),
        *(("1e6", 1_000_000), ("0.5", 0.5), ("[1]", [1]), ("true", True)),
    ],
)
def test_what_is_no_value_of_nix_is_a_string(
    text: str, value: Any, asked: list[tuple[str, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "tp3-triangle", "--set", f"engine.kvTokens={text}")[0] == 0
    [(_, apply)] = asked
    literal = str(apply).removeprefix("but: but (builtins.fromJSON ").removesuffix(")")
    assert json.loads(json.loads(literal)) == [{"option": ["engine", "kvTokens"], "value": value}]


def test_settings_reach_the_plans_only_when_given(asked: list[tuple[str, str | None]]) -> None:
    plans.load("tp3-triangle", {})
    assert asked == [("lib.fleets.tp3-triangle.plans", None)]
