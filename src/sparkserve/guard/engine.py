"""What a rank's supervisor does so that its engine never runs without a guard."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from sparkserve.guard import cgroup, flags, state

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.plan import Guard

WORD_S = 0.3  # the guard kills first and writes then


class EngineGuard:
    """The guard of this node's engine, with the levels of `plan`. `run` is where the two meet (a tmpfs).

    Raises OSError when the engine can have no cgroup of its own.
    """

    def __init__(self, plan: Guard, program: str, run: Path) -> None:
        self._plan = plan
        self._program = program
        self._flags = flags.Flags(run / flags.NAME)
        self._state = run / state.FILE.name
        self._cgroup = cgroup.make()
        self._kills = 0

    def prefix(self) -> list[str]:
        """What an engine's command begins with: it enters the cgroup before it is anything."""
        return [self._program, "--enter", str(self._cgroup)]

    def hindrance(self) -> str | None:
        """Why no engine may start now."""
        found = state.look(self._state)
        if not self.watches() or found is None:
            return "no memory guard watches (systemctl status sparkserve-guard)"
        if found.age_s > state.FRESH_S:
            return f"the memory guard's last sample is {found.age_s:.0f} s old"
        if not found.reach:
            return f"the memory guard does not find the engine's cgroup {self._cgroup}"
        line = self._plan.startup.line_mib
        if found.available_kib is None or found.available_kib < line << 10:
            have = (found.available_kib or 0) >> 10
            return f"MemAvailable is {have} MiB: below {line} MiB the guard kills an engine that starts"
        return None

    def watches(self) -> bool:
        """Whether a guard is there, and lives."""
        return self._flags.seen(flags.GUARD)

    def starts(self) -> None:
        """An engine is about to run. Raises OSError."""
        found = state.look(self._state)
        self._kills = found.kills if found else 0
        self._flags.drop(flags.STEADY)
        self._flags.take(flags.ENGINE)

    def serves(self) -> None:
        """It is ready: the steady floor counts. Raises OSError."""
        self._flags.take(flags.STEADY)

    def ended(self) -> None:
        """It does not run any more."""
        self._flags.drop(flags.STEADY)
        self._flags.drop(flags.ENGINE)

    async def verdict(self) -> str | None:
        """Why the guard killed the engine that started last; None when it did not."""
        deadline = time.monotonic() + WORD_S
        while True:
            found = state.look(self._state)
            if found is not None and found.kill is not None and found.kills > self._kills:
                return found.kill.words()
            if time.monotonic() > deadline:
                return None
            await asyncio.sleep(0.01)
