"""Puts delivered closures into effect on all nodes and starts the group: what `up` does after the copy.

All ranks change together, with the engine stopped: an activation never restarts it, and no rank meets one of
another fleet id.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.fleet import command as called
from sparkserve.group.protocol import Status
from sparkserve.runner import check, failed
from sparkserve.terminal import phase
from sparkserve.transport.deliver import parallel, switch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.runner import Result, Runner

RANK = "sparkserve-rank.service"
FRONT = "sparkserve-front.service"
REBOOT_S = 300.0  # a Spark takes one to three minutes, with its firmware
STOP_S = 60.0  # requests in flight get 30 s, the ranks 12 s to say that nothing is left
LOOK_S = 10.0  # a word at least so often while a boot goes on
HINDERED_S = 60.0  # a supervisor connects in 5 s, on busy cores in 20


def put_into_effect(runner: Runner, closures: Mapping[str, Path]) -> bool:
    """Make every node (the head first in `closures`) run its closure's units; False when they did already.

    A running group is drained and stopped when a closure changes, and left alone when only a unit is to be
    started. Raises as `run` of the runner.
    """
    missing = lacking(runner, closures)
    if not any(found is None or found for found in missing.values()):
        return False
    with phase("Activate the closure on all nodes") as detail:
        if None in missing.values():
            detail("stopping the group")
            stop(runner, closures)
            activate_all(runner, closures, detail)
            # Only now: what differs from its plan is activated again by the next `up`.
            parallel(runner, closures, lambda node: switch(runner, node, closures[node]))
            start_units(runner, units(closures))
        else:
            start_units(runner, {node: found for node, found in missing.items() if found})
    return True


def units(nodes: Iterable[str]) -> dict[str, list[str]]:
    """The units that serve on each of `nodes`, the head first."""
    return {node: [RANK] if place else [RANK, FRONT] for place, node in enumerate(nodes)}


def workers_first(nodes: Iterable[str]) -> list[str]:
    """The order in which `nodes`, the head first, change."""
    head, *workers = nodes
    return [*workers, head]


def lacking(runner: Runner, closures: Mapping[str, Path]) -> dict[str, list[str] | None]:
    """The units of each node that do not run; None where they are not those of its closure."""
    found: dict[str, list[str] | None] = {}
    wanted = units(closures)

    def look(node: str) -> None:
        found[node] = _missing(runner, node, closures[node], wanted[node])

    parallel(runner, closures, look)
    return found


def activate_all(runner: Runner, closures: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """Activate each node's closure, workers first, with the group stopped; reboot those that need it."""
    unready: dict[str, Path] = {}

    def work(node: str) -> None:
        if not _activate(runner, node, closures[node]):
            unready[node] = closures[node]

    head, *workers = closures
    for nodes in (workers, [head]):
        say(", ".join(nodes))
        parallel(runner, dict.fromkeys(nodes), work)
    if unready:
        say(f"rebooting {', '.join(unready)}")
        parallel(runner, unready, lambda node: _reboot(runner, node, unready[node]))


def start_units(runner: Runner, wanted: Mapping[str, list[str]]) -> None:
    """Start the `wanted` units of all nodes at once."""
    parallel(runner, wanted, lambda node: check(runner, node, commands.start_units(*wanted[node])))


def _activate(runner: Runner, node: str, closure: Path) -> bool:
    """Activate the node's closure; False when all is as planned but for what a reboot brings."""
    command = commands.activate(str(closure))
    result = runner.run(node, command)
    if result.code not in (0, EXIT_CODES["NODE.REBOOT"]):
        raise failed(node, command, f"exit code {result.code}: {result.err.strip()[-800:]}")
    return result.code == 0


def _reboot(runner: Runner, node: str, closure: Path) -> None:
    """Reboot the node, and verify its closure afterwards. No engine runs meanwhile."""
    before = check(runner, node, commands.boot_id())
    command = commands.reboot()
    deadline = time.monotonic() + REBOOT_S
    with suppress(SparkserveError):  # the answer may not come through
        runner.run(node, command)
    while True:
        with suppress(SparkserveError):
            if check(runner, node, commands.boot_id()) != before:
                break
        if time.monotonic() > deadline:
            raise failed(node, command, f"no new start within {REBOOT_S:.0f} s")
        time.sleep(0.5)
    check(runner, node, commands.activate(str(closure)))


def stop(runner: Runner, closures: Mapping[str, object]) -> None:
    """End the group and the supervisors on all nodes (the head first in `closures`); the front stays."""
    drain(runner, next(iter(closures)))
    parallel(runner, closures, lambda node: check(runner, node, commands.stop_units(RANK)))


def drain(runner: Runner, head: str) -> None:
    """Let requests end, and end the group: its ranks' supervisors stay."""
    status = _status(runner.run(head, commands.ask_group("stop")))
    deadline = time.monotonic() + STOP_S
    # Without a controller there is nothing to drain: stopping the units ends what is left.
    while status is not None and (status.state != "down" or status.phase) and time.monotonic() < deadline:
        status = _status(runner.run(head, commands.wait_group(status.key, LOOK_S)))


def status(runner: Runner, head: str) -> Status | None:
    """What the controller says; None when it says nothing."""
    return _status(runner.run(head, commands.ask_group("status")))


def start_group(runner: Runner, head: str) -> Status:
    """Tell the controller to start, and follow the boot until it serves.

    Raises `GROUP.BOOT` with the reason, which names the rank, when it gives up, when a rank runs something
    else, or when nothing has been started for `HINDERED_S`: the group then still waits for a mended cable,
    and we do not.
    """
    with phase("Start the group") as detail:
        status = _asked(runner, head, commands.ask_group("start"))
        started, since = status.starts[-1:], time.monotonic()
        while status.state != "up":
            # The group's own reason may still be the one from before.
            differs = "; ".join(rank.trouble for rank in status.ranks if not rank.connected and rank.trouble)
            if status.phase or status.starts[-1:] != started:
                started, since = status.starts[-1:], time.monotonic()
            if not status.wanted or differs or time.monotonic() - since > HINDERED_S:
                raise _gave_up(status, differs or status.reason)
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


def _missing(runner: Runner, node: str, closure: Path, units: list[str]) -> list[str] | None:
    """The `units` of a node that do not run; None when they are not those of `closure`."""
    if runner.run(node, commands.current()).out.strip() != str(closure):
        return None
    shown = check(runner, node, commands.shown_units(*units)).strip().split("\n\n")
    if len(shown) != len(units) or not all(f"{closure}/" in unit for unit in shown):
        return None
    return [name for name, unit in zip(units, shown, strict=True) if "ActiveState=active" not in unit]


def _words(status: Status) -> str:
    where = f"{status.phase}, {status.phase_s:.0f} s" if status.phase and status.phase_s else status.reason
    behind = [rank.node for rank in status.ranks if status.phase and rank.phase == status.phase]
    return f"boot {status.number}: {where}" + (f" ({', '.join(behind)})" if behind else "")


def _gave_up(status: Status, reason: str) -> SparkserveError:
    # What still waits has not been started, and the last start's log is of another trouble.
    log = status.starts[-1].log if status.starts and not status.wanted else ""
    return SparkserveError(
        "GROUP.BOOT",
        expected="all ranks up as one group",
        found=f"{reason}\n{log}".strip(),
        where=status.fleet,
        do=f"The ranks' logs: {called('logs', status.fleet)}. When the cause is gone: "
        f"{called('up', status.fleet)}; for Sparks, {called('deploy --apply', status.fleet)}.",
    )
