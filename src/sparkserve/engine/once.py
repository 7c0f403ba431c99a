"""An engine for as long as a check asks it.

It needs no checkout, no network and no root, so the Nix build sandbox has one too (checks/gates.nix).
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.engine import log, process, ready
from sparkserve.engine.record import NodeFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.engine.closure import Closure
    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan

LINES = 60
# Not the plan's limit, which is for a machine that serves: other builds share the cores here, and how long a
# start takes is no verdict. An engine that ends is noticed at once.
READY_S = 1800.0


@contextmanager
def serving(plan: Plan, closure: Closure, path: Path) -> Iterator[Run]:
    """The ready engine of the closure in the folder `path`; it is gone after the block.

    Whatever ends the block early also prints the end of the engine's log, which goes with its folder. Raises
    what start, readiness and stop raise.
    """
    with tempfile.TemporaryDirectory() as state:
        files = NodeFiles(Path(state), plan.fleet.name, plan.node.name)
        run = process.start(plan, closure, path, files)
        try:
            yield ready.wait(run, files, timeout_s=READY_S)
            process.stop(run, files)
        except BaseException:
            process.kill(run, files)
            print("\n".join(log.last_lines(files.log, LINES)), file=sys.stderr)
            raise
