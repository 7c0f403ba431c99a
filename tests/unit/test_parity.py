"""How the parity check compares, without Nix. That it holds is checks/parity.nix and the suite `parity`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkserve import parity
from sparkserve.errors import SparkserveError

ROOT = Path(__file__).parents[2]


def test_every_difference_is_named_with_both_values() -> None:
    left = {"same": 1, "other": {"ok": True, "value": 2}, "gone": 3}
    right = {"same": 1, "other": {"ok": False, "value": None}, "added": 4}
    assert parity.differences("A", left, "B", right) == [
        "added: A has null, B has 4",
        "gone: A has 3, B has null",
        'other: A has {"ok": true, "value": 2}, B has {"ok": false, "value": null}',
    ]


def test_a_folder_without_the_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkserveError, match="NIXPKGS_LIB"):
        parity.library_folder(tmp_path)


def test_the_committed_values_name_their_source() -> None:
    expected = json.loads((ROOT / "tests/parity/expected.json").read_text())
    assert expected["source"]["repository"] == "nix-community/nixpkgs.lib"
    assert len(expected["source"]["revision"]) == 40
    assert len(expected["cases"]) >= 60
    assert any(not case["ok"] for case in expected["cases"].values())


def test_the_subset_stays_under_its_cap() -> None:
    lines = [len(file.read_text().splitlines()) for file in (ROOT / "nix/lib").glob("*.nix")]
    assert 0 < sum(lines) <= 400
