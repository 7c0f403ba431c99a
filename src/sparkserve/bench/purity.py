"""Samples of a quiet machine: nobody else asks, nothing throttles, the engine stays the same.

A sample that is not of these is thrown away, listed, and repeated.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.bench import asker, counters
from sparkserve.bench.results import Discard
from sparkserve.errors import SparkserveError
from sparkserve.metrics import scrape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sparkserve.bench.task import Task
    from sparkserve.client.client import Client
    from sparkserve.client.reply import Reply


_BLIND = "the endpoint has no counters: others' traffic, steps and acceptance are not seen"


@dataclass(frozen=True)
class Limits:
    """Seconds between the two readings that find an engine idle, seconds to wait for that, repeats of a
    sample, seconds between two looks at what runs during one. The first three are owen's (6.6). A look costs
    the engine milliseconds, and the gauge moves every 40 steps only."""

    gap_s: float = 0.5
    idle_s: float = 300.0
    retries: int = 3
    look_s: float = 2.0


QUIET = Limits()


class Taken(NamedTuple):
    """A clean sample: its replies, the growth of the counters over it, the gauges at its end."""

    replies: list[Reply]
    growth: Mapping[str, float]
    now: Mapping[str, float]


class Purity:
    """Takes samples from `client`'s engine. `slow()` says since the last call why the machine was not itself.

    `discarded` is for the boot; `growth` is that of all clean samples.
    """

    def __init__(self, client: Client, limits: Limits, slow: Callable[[], str | None]) -> None:
        self._client = client
        self._limits = limits
        self._slow = slow
        self.discarded: list[Discard] = []
        self._blind = False
        self.growth: dict[str, float] = {}
        self._slow_kept: list[str] = []
        self._idle_since: Mapping[str, float] | None = None  # the counters then

    async def take(self, task: Task, number: int) -> Taken:
        """Sample `number` of `task`.

        Raises `BENCH.FOREIGN` when others keep the engine busy, `BENCH.REQUEST` when requests fail again and
        again, `ENGINE.STATE` when the engine was started again or is gone.
        """
        for last in [False] * self._limits.retries + [True]:
            taken, why, repairable = await self._try(task, number)
            if why is None:
                break
            name = task.names[0]
            if last and not repairable:
                raise asker.failed(name, taken.replies) if _failed(taken, task) else _foreign(name, why)
            if repairable and (last or self._slow_kept):
                # A laptop that always throttles has a speed too; four times the time would not change it.
                self._slow_kept.append(f"{name}, round {number}: {why}")
                break
            self.discarded.append(Discard(point=name, round=number, why=why))
        for key, value in taken.growth.items():
            self.growth[key] = self.growth.get(key, 0.0) + value
        return taken

    async def warm_up(self, task: Task) -> None:
        """Send what nobody measures, and learn what the endpoint takes. Raises `BENCH.REQUEST`."""
        replies = await task.send(-1)
        if not task.may_fail and any(reply.error or not reply.usage for reply in replies):
            raise asker.failed(task.names[0], replies)
        self._idle_since = None

    async def _try(self, task: Task, number: int) -> tuple[Taken, str | None, bool]:
        """A sample, why it is not clean, and whether it may be kept all the same."""
        before = self._idle_since or await self._idle()
        self._idle_since = None
        self._slow()
        peak = [0.0]
        watching = asyncio.create_task(self._watch(peak)) if before else None
        try:
            replies = await task.send(number)
        finally:
            if watching is not None:
                watching.cancel()
                # Not suppress: a cancellation of ours that comes just here must go on.
                await asyncio.gather(watching, return_exceptions=True)
        slow = self._slow()
        # Only now: a request of others that began during the sample is counted when it has ended.
        after = await self._idle() if before else {}
        try:
            growth = scrape.growth(before, after)
        except ValueError as error:
            raise _restarted(str(error)) from None
        self._idle_since = after
        taken = Taken(replies, growth, after)
        if _failed(taken, task):
            bad = [reply.error for reply in replies if reply.error]
            return taken, f"{len(bad)} of {len(replies)} requests failed: {bad[0]}", False
        ended = counters.total(growth, counters.REQUESTS) + counters.total(growth, counters.ABORTED)
        if ended > len(replies):
            return taken, f"{ended - len(replies):.0f} requests of others ended meanwhile", False
        if peak[0] > (ours := task.streams + task.beside):
            return taken, f"{peak[0]:.0f} requests ran at once, at most {ours} of them ours", False
        return taken, slow, True

    async def _watch(self, peak: list[float]) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            with suppress(ConnectionError, ValueError):
                peak[0] = max(peak[0], await counters.running(self._client))

    async def _idle(self) -> dict[str, float]:
        """The counters of an engine that has run nothing at two readings; empty when it has none."""
        deadline = time.monotonic() + self._limits.idle_s
        quiet = 0
        while True:
            found = await self._read()
            if not found:
                self._blind = True
                return {}
            busy = counters.total(found, counters.RUNNING) + counters.total(found, counters.QUEUED)
            quiet = 0 if busy else quiet + 1
            if quiet == 2:
                return found
            if time.monotonic() > deadline:
                raise _foreign(
                    self._client.endpoint, f"{busy:.0f} requests after {self._limits.idle_s:.0f} s"
                )
            await asyncio.sleep(self._limits.gap_s)

    async def _read(self) -> dict[str, float]:
        try:
            return await counters.read(self._client)
        except ConnectionError as error:
            raise _restarted(str(error)) from None

    @property
    def notes(self) -> list[str]:
        """What a reader of the boot must know."""
        slow = f"{len(self._slow_kept)} samples are of a slowed machine; " if self._slow_kept else ""
        return [_BLIND] * self._blind + [f"{slow}the first: {why}" for why in self._slow_kept[:1]]


def _failed(taken: Taken, task: Task) -> bool:
    return not task.may_fail and any(reply.error or not reply.usage for reply in taken.replies)


def _foreign(where: str, found: str) -> SparkserveError:
    return SparkserveError(
        "BENCH.FOREIGN",
        expected="an engine that nobody else asks while it is measured",
        found=found,
        where=where,
        do="Stop the others, or measure at another time; --resume goes on with what was saved.",
    )


def _restarted(found: str) -> SparkserveError:
    return SparkserveError(
        "ENGINE.STATE",
        expected="one engine from the first sample of a boot to the last",
        found=found,
        where="/metrics",
        do="See ./sparkserve status and logs; --resume goes on, with a new boot.",
    )
