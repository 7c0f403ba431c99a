"""The node that an activation works on: its files below a root, its programs, its name."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import disk
from sparkserve.errors import SparkserveError, not_root
from sparkserve.group import run_files

if TYPE_CHECKING:
    from collections.abc import Callable

# sudo and a non-interactive ssh may have less.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM_S = 90.0


def _run(*argv: str, timeout_s: float = PROGRAM_S) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": PATH, "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=timeout_s,
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(argv, 127, "", "no such program")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no end within {timeout_s:.0f} s")


def _nothing(step: str) -> None:
    """No test watches."""


@dataclass(frozen=True)
class System:
    """A node. Tests have a root of their own, and programs that answer as they like.

    `step` is called before everything that lasts, with a name for it: a test ends the process there. `wait_s`
    is how long the node may take to become as planned.
    """

    root: Path = Path("/")
    run: Callable[..., subprocess.CompletedProcess[str]] = _run
    name: str = field(default_factory=lambda: os.uname().nodename)
    step: Callable[[str], None] = _nothing
    runs: Path = run_files.RANK
    wait_s: float = 15.0

    def at(self, path: str) -> Path:
        """Where the node's absolute `path` is."""
        return self.root / path.lstrip("/")

    def has(self, program: str) -> bool:
        """Whether the node has a program."""
        folders = os.pathsep.join(str(self.at(folder)) for folder in PATH.split(":"))
        return shutil.which(program, path=folders) is not None

    def state(self) -> Path:
        """What activation remembers, on the node's disk."""
        return self.at(f"{run_files.STATE}/activation")

    def refused(self, error: OSError) -> SparkserveError:
        """What a user can act on, of what the node's files refuse."""
        where = str(error.filename or self.name)
        if isinstance(error, PermissionError):
            return not_root(where)
        if disk.met(error):
            return disk.full(where)
        return wrong("the node's files", error.strerror or str(error), where)


def wrong(
    expected: str, found: str, where: str, do: str = "Run the same command again: it goes on from there."
) -> SparkserveError:
    """The error for a node that is not as planned."""
    return SparkserveError("NODE.ACTIVATE", expected=expected, found=found, where=where, do=do)
