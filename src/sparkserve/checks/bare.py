"""A bare Debian 12 and a bare Debian 13: nothing installed, `./sparkserve up`, a right answer."""

from __future__ import annotations

import os
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

title = "on bare Debian 12 and 13 (debootstrap), what is committed comes up, answers and goes down"
cost_s = 900
slow = True

SUITES = ("bookworm", "trixie")
COMMAND = "./sparkserve up && ./sparkserve smoke && ./sparkserve down"


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/host/bare.sh for each release. Port 8888 must be free. Raises `HOST.PACKAGE`."""
    mirror = sources.debian()
    if mirror is None or shutil.which("debootstrap") is None:
        raise SparkserveError(
            "HOST.PACKAGE",
            expected="debootstrap and a Debian mirror in /etc/apt",
            found="one of them missing",
            where="this machine",
            do="Run: apt-get install debootstrap.",
        )
    failures = []
    script = str(checkout.root() / "tests" / "host" / "bare.sh")
    for suite in SUITES:
        folder = tempfile.mkdtemp(prefix=f"bare-{suite}-", dir=checkout.state())
        try:
            argv = [script, suite, mirror.uri, folder, COMMAND]
            code, lines = _command.run(f"bare-{suite}", argv, env=os.environ, detail=detail)
        finally:
            # By rm: a store is full of read-only folders. Its mounts died with the namespace.
            subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
        if code != 0:
            failures.append(f"{suite}: exit code {code}\n" + "\n".join(lines[-25:]))
    return Outcome(len(SUITES) - len(failures), failures)
