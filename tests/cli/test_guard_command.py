"""`sparkserve guard`, as people and scripts call it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sparkserve import plan as plans
from sparkserve.cli.main import main
from sparkserve.fleet import plans as fleet_plans
from sparkserve.guard import state

PLAN = Path(__file__).parents[1] / "golden" / "local-single" / "spark-0.json"
GUARD = {
    "startup": {"floor_mib": 5120, "line_mib": 5360, "interval_ms": 250},
    "steady": {"floor_mib": 3072, "line_mib": 3312, "interval_ms": 2000},
    **{"rate_mib_s": 8000, "closest_ms": 5, "kill_ms": 25},
}
KILL = {
    **{"phase": "steady", "floor_mib": 3072, "line_mib": 3312, "unix_ms": 1, "gone_ms": 9},
    "available_kib": 3300 << 10,
}
STATE = {
    **{"schema": "sparkserve.guard/1", "seq": 7, "end": 7, "pid": 9, "phase": "startup", "floor_mib": 5120},
    **{"line_mib": 5360, "engine": False, "reach": True, "available_kib": 96 << 20, "kills": 1, "kill": KILL},
    **{"low_water_kib": 3 << 20, "low_water_engine_kib": None, "lacks": ["real-time priority"]},
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["guard", *arguments])
    assert isinstance(caught.value.code, int)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The plan's guard; a test may change it."""
    given: dict[str, Any] = {"guard": GUARD}

    def load(name: str) -> list[plans.Plan]:
        guard = given["guard"] and plans.Guard.model_validate(given["guard"])
        return [plans.load(PLAN).model_copy(update={"guard": guard})]

    monkeypatch.setattr(fleet_plans, "load", load)
    return given


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "guard.json"
    monkeypatch.setattr(state.read, "__defaults__", (made,))
    return made


def test_explain_says_floors_lines_and_the_rate(
    capsys: pytest.CaptureFixture[str], fleet: dict[str, Any]
) -> None:
    code, out, err = run(capsys, "explain")
    assert code == 0
    assert ["until", "it", "serves", "5120", "MiB", "5360", "MiB", "250", "ms"] in map(
        str.split, out.splitlines()
    )
    assert ["while", "it", "serves", "3072", "MiB", "3312", "MiB", "2000", "ms"] in map(
        str.split, out.splitlines()
    )
    assert "falls by 8000 MiB/s at most" in err
    code, out, _ = run(capsys, "explain", "--json")
    assert json.loads(out) == {"fleet": "local-triangle", "guards": {"spark-0": GUARD}}


def test_explain_of_a_fleet_without_one(capsys: pytest.CaptureFixture[str], fleet: dict[str, Any]) -> None:
    fleet["guard"] = None
    code, out, err = run(capsys, "explain")
    assert (code, out) == (0, "")
    assert "No memory guard on spark-0" in err


def test_show_says_what_was_left_and_the_last_kill(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    file.write_text(json.dumps({**STATE, "monotonic_ms": int(time.monotonic() * 1000)}))
    code, out, _ = run(capsys, "show")
    rows = {line.split("  ")[0].strip(): line for line in out.splitlines()}
    assert code == 0
    assert "96.00 GiB" in rows["MemAvailable"]
    assert rows["least since the node's boot"].endswith("3.00 GiB")
    assert rows["least since its start"].endswith(" -")
    assert "MemAvailable 3.22 GiB, below the line of 3.23 GiB that keeps 3.00 GiB free (steady)" in out
    assert rows["did not get"].endswith("real-time priority")
    code, out, _ = run(capsys, "show", "--json")
    assert (code, json.loads(out)["low_water_kib"]) == (0, 3 << 20)


def test_show_without_a_guard_that_watches(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, err = run(capsys, "show")
    assert (code, out) == (64, "")
    assert err.startswith("GUARD.STATE expected the state of a memory guard, found ")
    file.write_text(json.dumps({**STATE, "monotonic_ms": 0}))
    code, out, _ = run(capsys, "show", "--json")
    assert code == 64
    assert json.loads(out)["expected"] == "a sample of the last 10 s"
