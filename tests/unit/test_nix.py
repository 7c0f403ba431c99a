"""Running Nix's programs, with a program in their place that misbehaves on command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sparkserve import nix

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, busy: int, error: str) -> list[str]:
    """A program that fails `busy` times with `error`, then prints how often it was called."""
    script = folder / "nix-store"
    script.write_text(
        f"""#!/bin/sh
echo >>{folder}/calls
calls=$(wc -l <{folder}/calls)
[ "$calls" -gt {busy} ] || {{ echo "{error}" >&2; exit 1; }}
echo "$calls"
"""
    )
    script.chmod(0o755)
    return [str(script)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)


BUSY = "error: SQLite database '/nix/var/nix/db/db.sqlite' is busy"


def test_a_busy_database_is_tried_again(tmp_path: Path) -> None:
    assert nix.run(program(tmp_path, 2, BUSY)) == ("3\n", "", 0)


def test_a_database_that_stays_busy_is_an_error(tmp_path: Path) -> None:
    assert nix.run(program(tmp_path, 99, BUSY)) == ("", BUSY, 1)
    assert (tmp_path / "calls").read_text().count("\n") == nix.BUSY_TRIES


def test_another_error_is_not_tried_again(tmp_path: Path) -> None:
    assert nix.run(program(tmp_path, 1, "error: path is not valid")) == ("", "error: path is not valid", 1)
