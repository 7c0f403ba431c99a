"""Pipes that break, streams that are closed, Ctrl-C before anything is imported: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PROGRAM = f"{sys.executable} -m sparkserve.cli.main"


def sh(script: str) -> tuple[int, str]:
    """Exit code and stderr of a bash script with the first command's code."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARKSERVE_CHECKOUT": str(CHECKOUT)}
    argv = ["bash", "-c", f"set -o pipefail; {script}"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["pins list --json", "pins list", "fleet schema", "--help"])
def test_reader_that_leaves(command: str) -> None:
    """With the code of any program that a broken pipe ends."""
    assert sh(f"{PROGRAM} {command} | true") == (141, "")


def test_nobody_reads_the_error() -> None:
    assert sh(f"{PROGRAM} fleet show nonesuch 2>&1 | true") == (141, "")


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str) -> None:
    assert sh(f"{PROGRAM} pins list {closed}") == (0, "")


def test_full_stdout() -> None:
    code, err = sh(f"{PROGRAM} pins list > /dev/full")
    assert code == 12
    assert err.startswith("HOST.DISK") and "Exception" not in err


def test_signal_handlers_come_before_slow_imports() -> None:
    slow = "import sys, sparkserve.cli.main; sys.exit(bool({'click', 'rich', 'pydantic'} & set(sys.modules)))"
    assert sh(f'{sys.executable} -c "{slow}"') == (0, "")
