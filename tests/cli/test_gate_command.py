"""`sparkserve gate`, as people and scripts call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from sparkserve import plan as plans
from sparkserve.cli.commands import gate
from sparkserve.cli.main import main
from sparkserve.fleet import plans as fleet_plans
from sparkserve.gates import registry, runner, subject
from sparkserve.gates.evidence import Evidence, Subject

PLAN = plans.load(Path(__file__).parents[1] / "golden" / "local-single" / "spark-0.json")
SUBJECT = Subject(endpoint="http://127.0.0.1:1", model="m")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["gate", *arguments])
    assert isinstance(caught.value.code, int)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


def evidence(name: str, **changed: Any) -> Evidence:
    given: dict[str, Any] = {
        **{"gate": name, "passed": True, "ran": True, "summary": "well", "subject": SUBJECT, "seed": 1},
        **{"started": "2026-11-30T22:00:00+00:00", "seconds": 1.0, "quick": False},
    }
    return Evidence(**(given | changed))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, Any]]:
    """What the runner was told to run; `determinism` fails."""
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    found: list[tuple[Any, Any]] = []

    async def fake(names: Any, order: Any, folder: Path) -> list[tuple[Evidence, Path]]:
        found.append((names, order))
        return [(evidence(name, passed=name != "determinism"), folder / f"{name}.json") for name in names]

    plan = PLAN.model_copy(update={"gates": ("determinism", "smoke")})
    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr(subject, "of_fleet", lambda name, key_file: subject.Target(SUBJECT, plan, key_file))
    monkeypatch.setattr(subject, "_engine", lambda endpoint, key_file: {})
    return found


def test_runs_what_the_plan_declares_in_its_order(
    asked: list[tuple[Any, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "run", "--seed", "7", "--quick")
    ((names, order),) = asked
    assert (names, order.seed, order.quick) == (["determinism", "smoke"], 7, True)
    assert (code, out) == (65, "")
    assert "seed 7" in err
    assert "1 passed, 1 failed" in err


def test_without_a_seed_it_takes_and_prints_a_new_one(
    asked: list[tuple[Any, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        code, out, _ = run(capsys, "run", "smoke", "--json")
        assert code == 0
        assert json.loads(out)["seed"] == asked[-1][1].seed
    assert asked[0][1].seed != asked[1][1].seed  # by chance once in 2^31 runs


@pytest.mark.parametrize("at", [(), ("--endpoint", "http://127.0.0.1:9/", "--model", "other")])
def test_asks_with_the_key_of_the_file_that_is_named(
    at: tuple[str, ...],
    asked: list[tuple[Any, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(capsys, "run", "smoke", *at)
    monkeypatch.setenv("SPARKSERVE_API_KEY_FILE", "/etc/one")
    run(capsys, "run", "smoke", *at)
    run(capsys, "run", "smoke", *at, "--api-key-file", "/etc/other")
    assert [order.key_file for _, order in asked] == [None, Path("/etc/one"), Path("/etc/other")]


def test_a_foreign_endpoint_has_no_plan(
    asked: list[tuple[Any, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--endpoint", "http://127.0.0.1:9/", "--model", "other")
    assert run(capsys, "run", "smoke", *at)[0] == 0
    assert asked[0][1].subject == Subject(endpoint="http://127.0.0.1:9", model="other")
    for arguments, words in (
        (("run", *at), "name those to run"),
        (("run", "smoke", *at, "--fleet", "x"), "either --fleet or --endpoint"),
        (("run", "smoke", *at[:2]), "--endpoint and --model go together"),
        (("run", "smokes"), "smokes is none of the gates"),
    ):
        code, _, err = run(capsys, *arguments)
        assert (code, words in err) == (2, True), err


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9", "https://127.0.0.1:9", "http://127.0.0.1:9/v1"])
def test_an_endpoint_of_another_form_is_refused_in_words(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "run", "smoke", "--endpoint", endpoint, "--model", "m")
    assert (code, "http://127.0.0.1:8888" in err) == (52, True), err


def test_a_bad_baseline_is_refused(
    asked: list[tuple[Any, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "run", "--against", str(tmp_path))
    assert (code, asked) == (66, [])
    assert "GATE.EVIDENCE" in err


def test_lists_gates_with_what_a_fleet_declares(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = PLAN.model_copy(update={"gates": ("mind-reading", "smoke")})
    monkeypatch.setattr(fleet_plans, "load", lambda name: [plan])
    code, out, _ = run(capsys, "list", "--json")
    rows = {row["gate"]: row for row in json.loads(out)}
    assert code == 0
    assert list(rows)[:2] == ["mind-reading", "smoke"]
    assert set(rows) == {"mind-reading", *registry.names()}
    assert rows["mind-reading"]["title"] == "not in this version of sparkserve"
    assert [rows[name]["declared"] for name in ("smoke", "determinism")] == [True, False]
    assert all(len(row["cost_s"]) == 2 for row in rows.values() if row["gate"] != "mind-reading")
    assert run(capsys, "list")[0] == 0


def test_compares_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, gap in (("old", 0.0), ("new", 0.25)):
        text = evidence("smoke", measured={"gap": gap}).model_dump_json(by_alias=True)
        (tmp_path / f"{name}.json").write_text(text)
    files = [str(tmp_path / f"{name}.json") for name in ("old", "new")]
    code, out, err = run(capsys, "compare", *files)
    assert code == 0
    assert "measured.gap  0    0.25" in out
    assert "do not compare" in err
    code, out, _ = run(capsys, "compare", *files, "--json")
    assert json.loads(out)["measured"] == {"gap": [0.0, 0.25]}
    assert run(capsys, "compare", files[0], str(tmp_path / "none.json"))[0] == 66


def test_tab_offers_gates() -> None:
    shell = BashComplete(gate.command, {}, "sparkserve", "_SPARKSERVE_COMPLETE")
    assert "determinism" in [item.value for item in shell.get_completions(["run"], "det")]
