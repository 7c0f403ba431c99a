"""Fleets that must not evaluate: each folder of tests/refused with the words that its refusal must have.

`fleet.nix` is the fleet; `expected.toml` has the error's `id`, and parts of its text: the `option` to change,
the `value` found and the `way` out. An evaluation takes 40 ms.
"""

from __future__ import annotations

import tomllib

import evaluated
import pytest

from sparkserve.errors import SparkserveError

REFUSED = evaluated.ROOT / "tests/refused"
CASES = sorted(folder.name for folder in REFUSED.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_is_refused_with_the_option_and_the_way_out(case: str) -> None:
    expected = tomllib.loads((REFUSED / case / "expected.toml").read_text())
    assert expected.keys() == {"id", "option", "value", "way"}
    with pytest.raises(SparkserveError) as refused:
        evaluated.value(f"{evaluated.fleets(REFUSED)}.{case}.plans")
    error = refused.value
    assert error.id == expected.pop("id"), error
    missing = [f"{part}: {text}" for part, text in expected.items() if text not in str(error)]
    assert missing == [], error
