"""The engine of one rank, as a child of its supervisor."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any

from sparkserve.adapters import report
from sparkserve.engine import namespace, procfs, runner
from sparkserve.group.launch import launch
from sparkserve.group.phases import reached

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.engine.closure import Closure
    from sparkserve.engine.procfs import Process
    from sparkserve.plan import Plan

PART = "sglang::"  # how SGLang names its processes that serve as long as it does
REPORT_S = 1.0  # from the launcher's end until bubblewrap has said with which exit code
KILL_S = 10.0  # from SIGKILL until the kernel has freed some GB


class RankEngine:
    """One start of this rank's engine. `phase` is an index of `phases.PHASES`, found in its log.

    It dies with the process that made it: nobody is there to stop it then.
    """

    def __init__(
        self, plan: Plan, closure: Closure, folder: Path, port: int, prefix: Sequence[str] = ()
    ) -> None:
        """Start it, its log in `folder`; `enter` then finds its processes. `prefix` comes before its command.

        Raises `ENGINE.START` or OSError.
        """
        self.log = folder / "rank.log"
        self.phase = 0
        self.quiet_since = time.monotonic()
        self._status = folder / "bwrap.json"
        self._rest = b""
        self._died_at: float | None = None
        self._parts: dict[Process, str] = {}
        place = launch(plan, port=port)
        with self.log.open("wb") as output, self._status.open("wb") as status:
            argv = runner.command(
                plan, closure, args=place.args, env=place.env, leashed=True, status_fd=status.fileno()
            )
            self.monitor = namespace.spawn([*prefix, *argv], output, status)
        self._input = self.log.open("rb")
        self.init: Process | None = None
        self.launcher: Process | None = None

    async def enter(self) -> None:
        """Wait until it runs in its root; `ended` says so when it does not."""
        # Only the waiting is in another thread: the engine dies with the thread that started it.
        entered = await asyncio.to_thread(namespace.enter, self.monitor, self._status)
        if entered is not None:
            self.init, self.launcher = entered

    def read(self) -> list[dict[str, Any]]:
        """Read what its log has gained: follow the phase, return the adapters' lines."""
        data = self._input.read()
        if not data:
            return []
        self.quiet_since = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        adapters = []
        for line in lines:
            text = line.decode(errors="replace")
            self.phase = reached(text, self.phase)
            # Not only at the start of a line: a progress bar leaves its line open.
            if report.PREFIX in text:
                adapters.append(_value(text.partition(report.PREFIX)[2]))
        return adapters

    def trouble(self) -> str:
        """What is wrong with its processes though it has not ended, "" for nothing.

        SGLang's launcher notices a dead child too, on busy cores after ten seconds.
        """
        for pid in procfs.tree(self.monitor.pid):
            stat = procfs.look(pid)
            if stat is not None and stat.state in "Tt":
                return f"{stat.name} (process {pid}) of its engine is stopped (SIGSTOP)"
            if stat is not None and stat.name.startswith(PART):
                self._parts[procfs.Process(pid, stat.start)] = stat.name
        dead = [(process, name) for process, name in self._parts.items() if not process.alive()]
        return "".join(f"{name} (process {process.pid}) of its engine died" for process, name in dead[:1])

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs."""
        if self.monitor.poll() is None:
            if self.launcher is None or self.launcher.alive():
                return None
            self._died_at = self._died_at or time.monotonic()
            if time.monotonic() - self._died_at < REPORT_S:
                return None
        code = namespace.exit_code(self._status)
        # Without a report bubblewrap itself failed, and says why in the log.
        how = namespace.how(self.monitor.poll() if code is None else code)
        return f"its engine {how}"

    def kill(self) -> bool:
        """End everything in its namespace now. False when something stays."""
        for process in (self.init, procfs.find(self.monitor.pid)):
            if process is not None:
                process.send(signal.SIGKILL)
        gone = self.init is None or self.init.wait(KILL_S)
        self.monitor.wait()
        self._input.close()
        return gone


def _value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    # A line that says nothing readable must not count as armed, nor be passed over.
    return value if isinstance(value, dict) else {"event": "refused", "reason": f"unreadable: {text[:200]}"}
