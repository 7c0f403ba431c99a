"""`sparkserve host` from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "sparkserve.cli.main", "host", *words]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", [[], ["prepare"], ["status"], ["activate"], ["deactivate"]])
def test_help_has_examples(words: list[str]) -> None:
    done = run(*words, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


def test_prepare_only_looks(tmp_path: Path) -> None:
    done = run("prepare", "--node", "no-such-name", "--json")
    assert done.returncode == 0
    steps = {step["name"]: step for step in json.loads(done.stdout)}
    assert steps["name"]["done"] is False
    assert steps["name"]["do"] == "hostnamectl hostname no-such-name"
    assert "to do" in run("prepare", "--node", "no-such-name").stdout


def test_a_folder_that_is_no_closure_is_an_error_in_words(tmp_path: Path) -> None:
    done = run("activate", str(tmp_path), "--json")
    assert done.returncode == 35
    assert json.loads(done.stdout)["error"] == "PLAN.SCHEMA"
    done = run("activate", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
