"""Builder of the check: runs the tests of tests/engine in the engine's root."""

import os
import subprocess
import sys
from pathlib import Path

from sparkserve.engine import closure, runner

argv = runner.program(
    closure.load(Path(os.environ["closure"])),
    ["/usr/bin/python3.11", "/run/tests"],
    env={"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"},
    binds={"/run/tests": os.environ["tests"]},
)
code = subprocess.run(argv, stdin=subprocess.DEVNULL).returncode
if code:
    sys.exit(code)
Path(os.environ["out"]).touch()
