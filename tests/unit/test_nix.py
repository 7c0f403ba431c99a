"""Running Nix's programs, with a program in their place that misbehaves on command."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from sparkserve import nix
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import pathlib, sys
calls, fails, error = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with calls.open("a") as file:
    file.write(".")
if len(calls.read_text()) <= fails:
    sys.exit(error)
print("done")
"""
RACES = (
    "error: SQLite database '/nix/var/nix/db/db.sqlite' is busy",
    "error: creating symlink from '/nix/var/nix/gcroots/profiles' to '/nix/var/nix/profiles': File exists",
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return tmp_path / "calls"


def run(calls: Path, fails: int, error: str) -> tuple[str, str, int]:
    """Run a program that fails `fails` times with `error`, then says `done`."""
    return nix.run([sys.executable, "-c", SCRIPT, str(calls), str(fails), error])


@pytest.mark.parametrize("error", RACES)
def test_a_lost_race_is_tried_again(calls: Path, error: str) -> None:
    assert run(calls, 2, error) == ("done\n", "", 0)


def test_a_race_that_is_always_lost_is_an_error(calls: Path) -> None:
    assert run(calls, 99, RACES[0]) == ("", RACES[0], 1)
    assert len(calls.read_text()) == nix.RACE_TRIES


def test_another_error_is_not_tried_again(calls: Path) -> None:
    assert run(calls, 1, "error: path is not valid") == ("", "error: path is not valid", 1)
    assert calls.read_text() == "."


def test_an_error_names_no_option_that_we_have_not() -> None:
    lines = "error: boo\n(use '--show-trace' to show detailed location information)\n"
    assert "boo" in nix.error(lines, "NIX.EVAL", "x").found
    assert "show-trace" not in nix.error(lines, "NIX.EVAL", "x").found


def test_a_checkout_that_was_edited_during_a_build_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Else the caller takes the path of what the files say now, which nobody has built.
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    built = json.dumps([{"drvPath": f"/nix/store/{name}.drv", "outputs": {"out": name}} for name in "ab"])
    monkeypatch.setattr(nix, "run", lambda argv, on_line: (built, "", 0))
    says = {"one.outPath": "b", "two.outPath": "a"}
    monkeypatch.setattr(nix, "eval_json", says.__getitem__)
    assert list(map(str, nix.build(["one", "two"]))) == ["b", "a"]
    says["two.outPath"] = "c"
    with pytest.raises(SparkserveError, match="to stay as they are") as caught:
        nix.build(["one", "two"])
    assert caught.value.id == "NIX.BUILD"
