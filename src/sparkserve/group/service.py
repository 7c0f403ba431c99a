"""`sparkserve rank run`: the supervisor of this node, and on the head the controller, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from sparkserve import notify
from sparkserve import plan as plans
from sparkserve.engine import closure as closures
from sparkserve.group import run_files
from sparkserve.group.controller import Controller
from sparkserve.group.supervisor import Supervisor

if TYPE_CHECKING:
    from pathlib import Path

ALIVE_S = 2.0  # the unit's WatchdogSec is ten times as long


def run(path: Path) -> None:
    """Serve the host closure at `path` until SIGTERM. Raises `PLAN.SCHEMA`, `GROUP.STATE`, OSError."""
    plan, closure = plans.load(path / "plan.json"), closures.load(path)
    for folder in (run_files.RUN, run_files.LOGS, run_files.STATE):
        folder.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(plan, closure, run=run_files.RUN, logs=run_files.LOGS)
    parts = [supervisor.serve(), _tell_alive()]
    if plan.node.rank == 0:
        controller = Controller(plan, closure, run=run_files.RUN, state=run_files.STATE)
        parts.append(controller.serve(notify.ready))
    else:
        notify.ready()
    asyncio.run(_until_stopped(parts))


async def _tell_alive() -> None:
    """A supervisor that does nothing any more is killed by systemd, and its engine with it."""
    while True:
        notify.alive()
        await asyncio.sleep(ALIVE_S)


async def _until_stopped(parts: list) -> None:  # type: ignore[type-arg]
    """Run `parts` together; the end of one, or SIGTERM, ends all."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tasks[0].cancel)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
