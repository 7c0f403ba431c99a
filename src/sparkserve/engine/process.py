"""Starts an engine as a daemon and stops it so that nothing is left."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from sparkserve import disk
from sparkserve.engine import log, namespace, procfs, runner
from sparkserve.engine.record import NodeFiles, Run
from sparkserve.errors import SparkserveError
from sparkserve.interrupts import uninterrupted

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.engine.closure import Closure
    from sparkserve.engine.procfs import Process
    from sparkserve.plan import Plan

DRAIN_S = 30.0  # SGLang drains and exits in 5 to 12 s on two cores
ORPHAN_S = 3.0  # what the launcher's children get once it is gone
KILL_S = 10.0  # from SIGKILL until the kernel has freed some GB


def start(plan: Plan, closure: Closure, path: Path, files: NodeFiles) -> Run:
    """Start the engine of the host closure at `path`; returns once it runs and the record is written.

    Raises `ENGINE.START` when bubblewrap cannot enter the root.
    """
    with uninterrupted():
        files.prepare()
        with files.log.open("wb") as output, files.status.open("wb") as status:
            argv = runner.command(plan, closure, status_fd=status.fileno())
            monitor = namespace.spawn(argv, output, status)
        try:
            begin = time.monotonic()
            entered = namespace.enter(monitor, files.status)
            if entered is None:
                raise failed(files, after=time.monotonic() - begin)
            init, engine = entered
            run = Run(
                fleet=plan.fleet.name,
                node=plan.node.name,
                fleet_id=closure.fleet_id,
                closure=str(path),
                host=plan.serving.host,
                port=plan.serving.port,
                model=plan.serving.model,
                started_at=time.time(),
                boot_id=procfs.boot_id(),
                monitor=procfs.find(monitor.pid) or procfs.Process(monitor.pid, 0),
                init=init,
                engine=engine,
                up=procfs.find(os.getpid()),
            )
            files.save(run)
        except BaseException:
            _abandon(monitor, files)
            raise
    return run


def stop(run: Run, files: NodeFiles, waiting: Callable[[str], None] = lambda text: None) -> None:
    """Stop the engine: SIGTERM to its launcher, 30 s to drain, then SIGKILL to its whole pid namespace.

    `waiting` is told once a second for how long. Also cleans up after an engine that is already dead.
    """
    begin = time.monotonic()
    if run.alive():
        # Not to bubblewrap: it would die alone and leave the engine running.
        run.engine.send(signal.SIGTERM)
    while run.leftover() and run.engine.alive() and time.monotonic() - begin < DRAIN_S:
        run.engine.wait(1.0)
        waiting(f"draining, {time.monotonic() - begin:.0f} s of at most {DRAIN_S:.0f} s")
    if run.leftover() and not run.engine.alive():
        run.init.wait(ORPHAN_S)
    kill(run, files)


def kill(run: Run, files: NodeFiles) -> None:
    """End everything of this start at once, and forget it. Raises `ENGINE.STATE` if something stays."""
    with uninterrupted():
        if run.leftover():
            run.init.send(signal.SIGKILL)
            gone = run.init.wait(KILL_S)
            if gone and not run.monitor.wait(1.0):
                run.monitor.send(signal.SIGKILL)
            if not gone:
                raise _stays(run.init, files)
        files.remove()


def stop_lost(files: NodeFiles) -> bool:
    """Stop an engine that runs without a (whole) record, known by its log; False when there is none.

    A record can be damaged or deleted by hand, and a start be killed before it writes one. The caller holds
    the fleet's lock, so it is no start on its way. Raises `ENGINE.STATE` if something stays.
    """
    found = procfs.writers(files.log)
    for init in found:
        for launcher in procfs.children(init.pid):
            launcher.send(signal.SIGTERM)
            launcher.wait(DRAIN_S)
        init.send(signal.SIGKILL)
        if not init.wait(KILL_S):
            raise _stays(init, files)
    return bool(found)


def failed(files: NodeFiles, *, after: float) -> SparkserveError:
    """The error for an engine that ended by itself after `after` seconds. Raises `HOST.DISK` if it must."""
    disk.check(files.state)
    how = namespace.how(namespace.exit_code(files.status))
    return SparkserveError(
        "ENGINE.START",
        expected="the engine to come up",
        found=f"it {how} after {after:.0f} s; its last lines:\n{log.tail(files.log)}\n",
        where=str(files.log),
        do="The log has the whole story: ./sparkserve logs -n 200.",
    )


def _stays(init: Process, files: NodeFiles) -> SparkserveError:
    return SparkserveError(
        "ENGINE.STATE",
        expected=f"the engine to be gone {KILL_S:.0f} s after SIGKILL",
        found=f"process {init.pid} still there",
        where=f"{files.fleet}/{files.node}",
        do="It hangs in the kernel (disk or driver); run ./sparkserve down again.",
    )


def _abandon(monitor: subprocess.Popen[bytes], files: NodeFiles) -> None:
    """Kill a bubblewrap whose namespace may not be known yet."""
    for pid in reversed(procfs.tree(monitor.pid)):
        process = procfs.find(pid)
        if process is not None:
            process.send(signal.SIGKILL)
    monitor.wait()
    files.remove()
