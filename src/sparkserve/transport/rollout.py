"""Puts delivered closures into effect on all nodes and starts the group: what `up` does after the copy.

All ranks change together, with the engine stopped: an activation never restarts it, and no rank meets one of
another fleet id.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.errors import SparkserveError
from sparkserve.group.protocol import Status
from sparkserve.output import phase
from sparkserve.runner import check, failed
from sparkserve.transport.deliver import parallel, switch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.runner import Result, Runner

RANK = "sparkserve-rank.service"
FRONT = "sparkserve-front.service"
STOP_S = 90.0  # requests in flight get 30 s, SGLang 15 s to end
LOOK_S = 10.0  # a word at least so often while a boot goes on


def put_into_effect(runner: Runner, closures: Mapping[str, Path]) -> bool:
    """Make every node (the head first in `closures`) run its closure's units; False when they did already.

    A running group is drained and stopped when anything changes. Raises as `run` of the runner.
    """
    head = next(iter(closures))
    states = dict.fromkeys(closures, False)

    def look(node: str) -> None:
        states[node] = _in_effect(runner, node, closures[node], node == head)

    parallel(runner, closures, look)
    if all(states.values()):
        return False
    with phase("Activate the closure on all nodes") as detail:
        detail("stopping the group")
        stop(runner, closures)
        for node in [*list(closures)[1:], head]:
            detail(node)
            switch(runner, node, closures[node])
            check(runner, node, commands.activate(str(closures[node])))

        def start(node: str) -> None:
            check(runner, node, commands.start_units(*([RANK, FRONT] if node == head else [RANK])))

        parallel(runner, closures, start)
    return True


def stop(runner: Runner, closures: Mapping[str, object]) -> None:
    """End the group and the supervisors on all nodes (the head first in `closures`); the front stays."""
    head = next(iter(closures))
    status = _status(runner.run(head, commands.ask_group("stop")))
    deadline = time.monotonic() + STOP_S
    # Without a controller there is nothing to drain: stopping the units ends what is left.
    while status is not None and (status.state != "down" or status.phase) and time.monotonic() < deadline:
        status = _status(runner.run(head, commands.wait_group(status.key, LOOK_S)))
    parallel(runner, closures, lambda node: check(runner, node, commands.stop_units(RANK)))


def status(runner: Runner, head: str) -> Status | None:
    """What the controller says; None when it says nothing."""
    return _status(runner.run(head, commands.ask_group("status")))


def start_group(runner: Runner, head: str) -> Status:
    """Tell the controller to start, and follow the boot until it serves.

    Raises `GROUP.BOOT` with the reason, which names the rank, when it gives up or a rank runs something else.
    """
    with phase("Start the group") as detail:
        status = _asked(runner, head, commands.ask_group("start"))
        while status.state != "up":
            differs = any(rank.trouble and not rank.connected for rank in status.ranks)
            if not status.wanted or differs:
                raise _gave_up(status)
            detail(_words(status))
            status = _asked(runner, head, commands.wait_group(status.key, LOOK_S))
    return status


def _asked(runner: Runner, head: str, command: Command) -> Status:
    """The status that `command` prints. Raises `NODE.COMMAND` without one."""
    result = runner.run(head, command)
    status = _status(result)
    if status is None:
        raise failed(head, command, f"exit code {result.code}: {(result.err or result.out).strip()[-300:]}")
    return status


def _status(result: Result) -> Status | None:
    """The status in a command's output; None also for that of another version of the harness."""
    try:
        return Status.model_validate_json(result.out) if result.code == 0 else None
    except ValidationError:
        return None


def _in_effect(runner: Runner, node: str, closure: Path, is_head: bool) -> bool:
    if runner.run(node, commands.current()).out.strip() != str(closure):
        return False
    units = [RANK, FRONT] if is_head else [RANK]
    shown = check(runner, node, commands.shown_units(*units)).split("\n\n")
    good = (f"{closure}/" in unit and "ActiveState=active" in unit for unit in shown)
    return len(shown) == len(units) and all(good)


def _words(status: Status) -> str:
    where = f"{status.phase}, {status.phase_s:.0f} s" if status.phase and status.phase_s else status.reason
    behind = [rank.node for rank in status.ranks if status.phase and rank.phase == status.phase]
    return f"boot {status.number}: {where}" + (f" ({', '.join(behind)})" if behind else "")


def _gave_up(status: Status) -> SparkserveError:
    return SparkserveError(
        "GROUP.BOOT",
        expected="all ranks up as one group",
        found=f"{status.reason}\n{status.starts[-1].log if status.starts else ''}".strip(),
        where=status.fleet,
        do="The ranks' logs: ./sparkserve logs. When the cause is gone: ./sparkserve up.",
    )
