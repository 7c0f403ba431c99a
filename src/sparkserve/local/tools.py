"""Runs the programs of node-tools on the machine, and says in words what went wrong."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Tools(NamedTuple):
    """The programs in `folder`/bin. They come before the machine's own, which may be missing or old."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """The environment to start one of them in."""
        path = f"{self.folder}/bin:{os.environ.get('PATH', os.defpath)}"
        return {**os.environ, "PATH": path, "LC_ALL": "C"}

    def run(self, argv: Sequence[str], *, text: str = "") -> str:
        """Run `argv` with `text` as its stdin; its stdout. Raises `HOST.SYSTEM`."""
        done = self.attempt(argv, text=text)
        if done.returncode == 0:
            return done.stdout
        raise SparkserveError(
            "HOST.SYSTEM",
            expected=f"success of: {' '.join(argv)}",
            found=(done.stderr or done.stdout).strip()[-600:] or f"exit code {done.returncode}",
            where="this machine",
            do="Run ./sparkserve down, then the same command again; if it stays, this kernel or container "
            "lacks what the message names.",
        )

    def attempt(self, argv: Sequence[str], *, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run `argv` and take any outcome."""
        return subprocess.run(argv, input=text, capture_output=True, text=True, env=self.environment())
