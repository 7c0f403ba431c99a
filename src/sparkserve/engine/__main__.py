"""`python -m sparkserve.engine CLOSURE`: serve once, ask the smoke question, stop; JSON on stdout.

It needs no checkout, no network and no root, so the Nix build sandbox runs it too (checks/serve.nix).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sparkserve import plan as plans
from sparkserve.engine import closure as closures
from sparkserve.engine import log, process, ready, smoke
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError
from sparkserve.output import print_error, print_json


def main(path: Path) -> None:
    """Serve the host closure at `path` once. Raises what start, readiness and smoke raise."""
    plan, closure = plans.load(path / "plan.json"), closures.load(path)
    with tempfile.TemporaryDirectory() as state:
        files = NodeFiles(Path(state), plan.fleet.name, plan.node.name)
        run = process.start(plan, closure, path, files)
        try:
            run = ready.wait(run, files, timeout_s=plan.serving.ready_timeout_s)
            ready_s = time.time() - run.started_at
            result = smoke.check(run.endpoint, run.model)
            process.stop(run, files)
        except BaseException:
            process.kill(run, files)
            print("\n".join(log.last_lines(files.log, 60)), file=sys.stderr)  # the log goes with the folder
            raise
    print_json({**result, "ready_s": round(ready_s, 1), "fleet_id": closure.fleet_id})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m sparkserve.engine CLOSURE")
    try:
        main(Path(sys.argv[1]).resolve())
    except SparkserveError as error:
        print_error(error, as_json=False)
        sys.exit(error.exit_code)
