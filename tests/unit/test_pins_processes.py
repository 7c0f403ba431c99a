"""Nothing that pip or apt started outlives the command that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from sparkserve.engine import procfs

if TYPE_CHECKING:
    from pathlib import Path

# As cli/main.py does, a SIGTERM is an interrupt.
PROGRAM = """
import signal, sys
from sparkserve.pins import processes
signal.signal(signal.SIGTERM, signal.default_int_handler)
processes.run([sys.executable, "-c", "import time; time.sleep(600)"])
"""


def test_a_stopped_command_ends_what_it_runs(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARKSERVE_CHECKOUT": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stderr=subprocess.DEVNULL) as command:
        end = time.monotonic() + 20
        while not (running := procfs.children(command.pid)) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)  # until `run` waits for it
        command.send_signal(signal.SIGTERM)
    assert command.returncode != 0
    [child] = running
    gone = child.wait(5)
    child.send(signal.SIGKILL)
    assert gone
