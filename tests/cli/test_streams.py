"""Pipes that break, streams that are closed, Ctrl-C before anything is imported: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "sparkserve.cli.main")
# Closes descriptors, which `subprocess` cannot, and becomes another program.
WITHOUT = (
    "import os, sys\n"
    "for fd in map(int, sys.argv[1].split()): os.close(fd)\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


def run(*argv: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """Exit code and stderr."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARKSERVE_CHECKOUT": str(CHECKOUT)}
    done = subprocess.run(argv, env=env, stdout=stdout, stderr=stderr, text=True, timeout=60)
    return done.returncode, done.stderr or ""


@pytest.fixture
def broken() -> Iterator[int]:
    """A pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("command", ["pins list --json", "pins list", "fleet schema", "--help"])
def test_reader_that_leaves(command: str, broken: int) -> None:
    """With the code of any program that a broken pipe ends."""
    assert run(*PROGRAM, *command.split(), stdout=broken) == (141, "")


def test_nobody_reads_the_error(broken: int) -> None:
    assert run(*PROGRAM, "fleet", "show", "nonesuch", stdout=broken, stderr=broken)[0] == 141


@pytest.mark.parametrize("closed", ["1", "0 1 2"])
def test_closed_streams(closed: str) -> None:
    assert run(sys.executable, "-c", WITHOUT, closed, *PROGRAM, "pins", "list") == (0, "")


@pytest.mark.parametrize(("command", "code"), [("pins list", 0), ("fleet show nonesuch", 33)])
@pytest.mark.parametrize("stream", [1, 2])
def test_a_stream_that_cannot_be_written(stream: int, command: str, code: int) -> None:
    """As bash passes on a closed one: its script, to read."""
    with Path(__file__).open() as script:
        to = {"stdout": script.fileno()} if stream == 1 else {"stderr": script.fileno()}
        assert run(*PROGRAM, *command.split(), **to)[0] == code


def test_full_stdout() -> None:
    with Path("/dev/full").open("w") as full:
        code, err = run(*PROGRAM, "pins", "list", stdout=full.fileno())
    assert code == 12
    assert err.startswith("HOST.DISK") and "Exception" not in err


def test_signal_handlers_come_before_slow_imports() -> None:
    slow = "import sys, sparkserve.cli.main; sys.exit(bool({'click', 'rich', 'pydantic'} & set(sys.modules)))"
    assert run(sys.executable, "-c", slow) == (0, "")
