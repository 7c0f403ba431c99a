"""`sparkserve guard explain`: what it tells of fleets whose nodes have other guards, without Nix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkserve import nix
from sparkserve.cli.main import main
from sparkserve.fleet import names

GOLDEN = Path(__file__).parents[2] / "tests/golden/tp3-triangle"


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The plans that Nix answers with."""
    plans = {file.stem: json.loads(file.read_text()) for file in sorted(GOLDEN.glob("*"))}
    monkeypatch.setattr(nix, "eval_json", lambda attribute, apply=None: plans)
    monkeypatch.setattr(names, "require_tracked", lambda name: None)
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(GOLDEN.parents[2]))
    return plans


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["guard", "explain", "--fleet", "tp3-triangle", *arguments])
    assert caught.value.code == 0
    out, err = capsys.readouterr()
    return out, err


def test_nodes_with_equal_guards_are_told_once(
    values: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = told(capsys)
    assert out.count("while it serves") == 1
    assert "spark-0, spark-1, spark-2" in out


def test_a_node_with_another_floor_or_none_is_told_apart(
    values: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    values["spark-1"]["guard"]["steady"] |= {"floor_mib": 1024, "line_mib": 1424}
    values["spark-2"]["guard"] = None
    out, err = told(capsys)
    assert [line.split("  ")[0] for line in out.splitlines() if "killed below" in line] == [
        "the engine of spark-0",
        "the engine of spark-1",
    ]
    assert "3072 MiB" in out and "1024 MiB" in out
    assert "No memory guard on spark-2" in out + err
    guards = json.loads(told(capsys, "--json")[0])["guards"]
    assert guards == {node: plan["guard"] for node, plan in values.items()}
