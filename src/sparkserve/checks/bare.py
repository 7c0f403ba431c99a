"""A bare Debian 12 and a bare Debian 13: nothing installed, `./sparkserve up`, a right answer, one fleet id.

Nix is 2.8 and 2.26 there, and Python, git, shell and C library differ: the fleet id shows that none matters.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from sparkserve import checkout
from sparkserve.checks import Outcome, _command
from sparkserve.errors import SparkserveError
from sparkserve.pins import sources

if TYPE_CHECKING:
    from collections.abc import Callable

title = "on bare Debian 12 and 13 (debootstrap), what is committed comes up, answers, and has one fleet id"
cost_s = 300
slow = True

SUITES = ("bookworm", "trixie")
COMMAND = "./sparkserve up --json && ./sparkserve smoke && ./sparkserve down"


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/host/bare.sh for each release. Port 8888 must be free. Raises `HOST.PACKAGE`."""
    mirror = sources.debian()
    if mirror is None or shutil.which("debootstrap") is None:
        raise SparkserveError(
            "HOST.PACKAGE",
            expected="debootstrap and a Debian mirror in /etc/apt",
            found="no source for Debian" if mirror is None else "no debootstrap",
            where="this machine",
            do="Run: apt-get install debootstrap. It needs a machine whose apt has Debian's main.",
        )
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout.root(), capture_output=True, text=True, check=True
    ).stdout.strip()
    failures = []
    fleet_ids = {}
    for suite in SUITES:
        code, lines = _on(suite, mirror.uri, commit, detail)
        fleet_ids[suite] = " ".join(re.findall(r'"fleet_id": "(\w+)"', "\n".join(lines)))
        if code != 0:
            failures.append(f"{suite}: exit code {code}\n" + "\n".join(lines[-25:]))
    if "" in fleet_ids.values() or len(set(fleet_ids.values())) != 1:
        failures.append(f"one fleet id expected, found {fleet_ids}")
    return Outcome(len(SUITES) + 1 - len(failures), failures)


def _on(suite: str, mirror: str, commit: str, detail: Callable[[str], None]) -> tuple[int, list[str]]:
    script = str(checkout.root() / "tests" / "host" / "bare.sh")
    folder = tempfile.mkdtemp(prefix=f"bare-{suite}-", dir=checkout.state())
    try:
        argv = [script, suite, mirror, folder, COMMAND, commit]
        return _command.run(f"bare-{suite}", argv, env=os.environ, detail=detail)
    finally:
        # By rm: a store is full of read-only folders. Its mounts died with the namespace.
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
