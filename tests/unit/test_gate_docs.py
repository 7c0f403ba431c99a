"""docs/gates.md: a section for each gate, and the table of what was swept."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from sparkserve.gates import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/gates.md").read_text()


@pytest.mark.parametrize("gate", registry.names())
def test_each_gate_has_a_section(gate: str) -> None:
    assert f"\n### {gate}\n" in PAGE


def test_the_table_is_that_of_the_results() -> None:
    # Another one is wanted: python tests/host/sweep_gates.py GATE
    spec = importlib.util.spec_from_file_location("sweep_gates", ROOT / "tests/host/sweep_gates.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    results = json.loads((ROOT / "docs/results/gates.json").read_text())
    begin, end = script.MARKS
    assert PAGE.partition(begin)[2].partition(end)[0] == script.page(results)
    # A gate that raises false alarms among clean engines is no gate.
    assert {name: each["false_alarms"] for name, each in results.items()} == dict.fromkeys(results, 0)
