"""What needs a kernel of its own: boot arguments, RoCE GIDs, a watchdog, NFS, memory that really runs out."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sparkserve.checks import _pytest
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.checks import Outcome

title = "tests/vm: a Debian guest under QEMU emulation with the host policy of a node"
cost_s = 900
slow = True
QEMU = "qemu-system-x86_64"


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/vm with the pinned pytest. Raises `NIX.BUILD`, and `HOST.PACKAGE` without QEMU."""
    if shutil.which(QEMU) is None:
        raise SparkserveError(
            "HOST.PACKAGE",
            expected=f"{QEMU} for a guest",
            found="no such program",
            where="this machine",
            do="Run: apt-get install --no-install-recommends qemu-system-x86",
        )
    return _pytest.run("vm", ["tests/vm"], detail)
