"""Processes as /proc shows them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from sparkserve.engine import procfs

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_signal_reaches_only_the_same_process() -> None:
    with subprocess.Popen(SLEEP) as child:
        found = procfs.find(child.pid)
        assert found is not None and found.alive()
        procfs.Process(child.pid, found.start - 1).send(signal.SIGKILL)
        assert not found.wait(0.1)
        found.send(signal.SIGKILL)
        # A zombie until the with statement collects it: gone all the same.
        assert found.wait(5)
        assert not found.alive()
    found.send(signal.SIGKILL)
    assert found.wait(0)


def test_tree_and_memory() -> None:
    with subprocess.Popen(SLEEP) as child:
        assert child.pid in procfs.tree(os.getpid())
        assert child.pid in [process.pid for process in procfs.children(os.getpid())]
        memory = procfs.pss_bytes([child.pid, os.getpid()])
        assert memory is not None and memory > 1_000_000
        child.kill()
    assert procfs.pss_bytes([child.pid]) is None
