"""Evidence as files, and two of them compared."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from gate_values import SUBJECT, evidence

from sparkserve.errors import SparkserveError
from sparkserve.gates import compare, files

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_named_by_gate_and_time_and_never_written_over(tmp_path: Path) -> None:
    one, other = evidence(), evidence(seed=8)
    paths = [files.save(one, tmp_path / "a" / "b"), files.save(other, tmp_path / "a" / "b")]
    assert [path.name for path in paths] == ["smoke-20261130T220000Z.json", "smoke-20261130T220000Z-2.json"]
    assert [files.read(path) for path in paths] == [one, other]
    assert sorted(os.listdir(tmp_path / "a" / "b")) == sorted(path.name for path in paths)  # noqa: PTH208


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "nested too deep"),
        ("{}", "Field required at gate"),
        (
            evidence().model_dump_json(by_alias=True).replace("sparkserve.gate/1", "x/1"),
            "at schema",
        ),
        (
            evidence().model_dump_json(by_alias=True).replace('"seed":7', '"seed":"7"'),
            "integer at seed",
        ),
        ('{"seconds": NaN}', "NaN, which is no number"),
    ],
)
def test_a_file_that_is_no_evidence_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(SparkserveError, match=words) as caught:
        files.read(tmp_path / "e.json")
    assert caught.value.id == "GATE.EVIDENCE"


def test_a_baseline_is_a_file_or_the_newest_of_each_gate_in_a_folder(tmp_path: Path) -> None:
    for hour, gate in ((23, "smoke"), (22, "smoke"), (22, "needle")):
        files.save(evidence(gate=gate, seed=hour, started=f"2026-11-30T{hour}:00:00+00:00"), tmp_path)
    found = files.baseline(tmp_path, ["smoke", "tscan"])
    assert {gate: each.seed for gate, each in found.items()} == {"smoke": 23}
    one = files.baseline(tmp_path / "needle-20261130T220000Z.json", ["needle"])
    assert {gate: each.seed for gate, each in one.items()} == {"needle": 22}
    for path, gates in ((tmp_path, ["tscan"]), (tmp_path / "none", ["smoke"])):
        with pytest.raises(SparkserveError) as caught:
            files.baseline(path, gates)
        assert caught.value.id == "GATE.EVIDENCE"


def test_two_tell_what_changed_and_no_more() -> None:
    old = evidence(measured={"gap": 0.0, "same": 1}, prompts=("a",), counters={"n": 1.0})
    new = evidence(
        measured={"gap": 0.5, "same": 1}, prompts=("a",), counters={"n": 1.0}, passed=False,
        subject=SUBJECT.model_copy(update={"fleet_id": "e" * 64}),
    )  # fmt: skip
    found = compare.two(old, new)
    assert found["measured"] == {"gap": [0.0, 0.5], "passed": [True, False]}
    assert found["subject"] == {"fleet_id": ["f" * 64, "e" * 64]}
    assert (found["limits"], found["counters"], found["comparable"]) == ({}, {}, True)
    assert found["passed"] is False
    assert compare.two(old, old)["passed"] is True
    assert compare.two(old, evidence(prompts=("b",)))["comparable"] is False


def test_what_a_gate_cannot_compare_is_said() -> None:
    with pytest.raises(SparkserveError, match="the baseline has no tasks in it") as caught:
        compare.two(evidence(gate="qeval"), evidence(gate="qeval"))
    assert caught.value.id == "GATE.EVIDENCE"


def test_two_gates_do_not_compare() -> None:
    with pytest.raises(SparkserveError) as caught:
        compare.two(evidence(), evidence(gate="needle"))
    assert caught.value.id == "GATE.EVIDENCE"
