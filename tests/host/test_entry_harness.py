"""The entry script with the real harness, in a clone of what is committed. Half a minute; needs an index."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

SOURCE = Path(__file__).parents[2]
EDIT_S = 20


def test_a_clone_with_carriage_returns_wanted_has_none(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    argv = [
        "git",
        "-c",
        "core.autocrlf=true",
        "clone",
        "--quiet",
        "--depth",
        "1",
        f"file://{SOURCE}",
        str(clone),
    ]
    subprocess.run(argv, check=True)
    shown = subprocess.run(
        [str(clone / "sparkserve"), "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("sparkserve, version ")


def test_edits_of_the_real_harness(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{SOURCE}", str(clone)], check=True)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [str(clone / "sparkserve"), *arguments]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)

    assert run("check", "--list").returncode == 0
    harness = clone / ".sparkserve/harness"
    first = harness.readlink()
    done = run("chekc")
    assert done.returncode == 2
    assert "No such command 'chekc'" in done.stderr

    (clone / "README.md").write_text("Something else.\n")
    assert run("check", "--list").stderr == ""
    assert harness.readlink() == first

    (clone / "src/sparkserve/__init__.py").write_text('"""Edited."""\n\n__version__ = "9.9.9"\n')
    begin = time.monotonic()
    done = run("check", "--list")
    assert "building the harness" in done.stderr
    assert time.monotonic() - begin < EDIT_S
    assert run("--version").stdout == "sparkserve, version 9.9.9\n"
    assert harness.readlink() != first
