"""The canary: one token asked of an idle engine.

SGLang's /health_generate (not its /health, which can be switched to ask nothing) makes one token when the
engine is idle. When it is busy, the scheduler answers after its next step through all ranks, so that a
prefill of a million tokens is not taken for a hang: each of its chunks is such a step.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkserve.front.config import Address
    from sparkserve.front.health import Health

_PATH = "/health_generate"


class Canary:
    """Sends one probe at a time, on a connection of its own."""

    def __init__(self, health: Health, engine: Address, lost_s: float) -> None:
        self._health = health
        self._engine = engine
        self._lost_s = lost_s
        self._task: asyncio.Task[None] | None = None

    def send(self) -> None:
        """Send one; `health` hears how it ends."""
        self._health.probe_sent()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """Forget one that is out: its boot is over."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        failure: str | None
        try:
            async with asyncio.timeout(self._lost_s):
                failure = await self._ask()
        except TimeoutError:
            failure = f"no answer in {self._lost_s:g} s"
        except OSError as error:
            failure = os.strerror(error.errno) if error.errno else str(error)
        self._health.probe_ended(failure)

    async def _ask(self) -> str | None:
        """None for a token, else what came instead."""
        reader, writer = await asyncio.open_connection(self._engine.host, self._engine.port)
        try:
            request = f"GET {_PATH} HTTP/1.1\r\nHost: {self._engine}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            line = (await reader.readline()).strip()
        finally:
            writer.transport.abort()
        if line.startswith(b"HTTP/1.1 200"):
            return None
        return f"{_PATH} says {line.decode('latin-1')!r}"
