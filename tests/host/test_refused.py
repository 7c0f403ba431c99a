"""Fleets that must not evaluate: each folder of tests/refused with the words that its refusal must have.

`fleet.nix` is the fleet; `expected.toml` has the error's `id`, and parts of its text: the `option` to change,
the `value` found and the `way` out. An evaluation takes 40 ms.
"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from sparkserve import nix

ROOT = Path(__file__).parents[2]
REFUSED = ROOT / "tests/refused"
CASES = sorted(folder.name for folder in REFUSED.iterdir())


def evaluate(fleet: str) -> subprocess.CompletedProcess[str]:
    expression = (
        f"(import {ROOT}/nix/fleet.nix {{ lib = import {ROOT}/nix/lib; modules = {ROOT}/modules; "
        f"hosts = {REFUSED}; }}).{fleet}.plans"
    )
    argv = ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression]
    return subprocess.run(argv, env=nix.environment(), capture_output=True, text=True)


@pytest.mark.parametrize("case", CASES)
def test_is_refused_with_the_option_and_the_way_out(case: str) -> None:
    expected = tomllib.loads((REFUSED / case / "expected.toml").read_text())
    assert expected.keys() == {"id", "option", "value", "way"}
    done = evaluate(case)
    assert done.returncode != 0, f"{case} evaluates"
    error = nix.error(done.stderr, "NIX.EVAL", case)
    assert error.id == expected.pop("id"), error
    missing = [f"{part}: {text}" for part, text in expected.items() if text not in str(error)]
    assert missing == [], error
