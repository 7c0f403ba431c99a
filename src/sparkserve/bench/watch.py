"""All nodes watched while they are measured: stopped before the guard would kill, told when they are slow.

The guard's line is where an engine dies. A bench that comes near it has a wrong setting, and a kill would
cost the boot and all who use it; so the run ends 1 GiB above the line, with what was measured.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.bench import node as nodes
from sparkserve.bench.node import Facts
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from typing import Any

    from sparkserve.plan import Plan
    from sparkserve.runner import Runner

_T = TypeVar("_T")
GIB_KIB = 1 << 20
MARGIN_KIB = GIB_KIB  # owen 6.6
SHARE = 16  # of a machine with less than 16 GiB the margin is a 16th
STOLEN = 0.05  # of a sample's time: more than what samples of a quiet machine differ by
# A Spark that works has clocks of 2,000 MHz and more, and takes 60 W. One in its firmware's power state stays
# at 690 to 890 MHz with 96 % utilization (issue F01); one that waits in a collective takes about 20 W (I06).
BUSY, LATCHED_MHZ, WAITING_W = 90.0, 1000.0, 25.0
SWAPPED_GIB = 0.01
JOIN_S = 0.2


class Source(Protocol):
    """Where the facts of nodes come from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        ...

    def follow(self, name: str) -> Iterator[Facts]:
        """A node each second until `close`. Raises SparkserveError when it cannot be seen."""
        ...

    def close(self) -> None:
        """End all `follow`."""
        ...


class Here:
    """This machine under the name `name`."""

    def __init__(self, name: str) -> None:
        self.names = (name,)
        self._ended = threading.Event()

    def follow(self, name: str) -> Iterator[Facts]:
        """See `Source.follow`."""
        return nodes.follow(self._ended.wait)

    def close(self) -> None:
        """See `Source.close`."""
        self._ended.set()


class There:
    """The nodes of a group, each asked over `runner`."""

    def __init__(self, runner: Runner, names: tuple[str, ...]) -> None:
        self.names = names
        self._runner = runner

    def follow(self, name: str) -> Iterator[Facts]:
        """See `Source.follow`."""
        for line in self._runner.lines(name, commands.watch()):
            with suppress(ValidationError):  # the last line of a command that was ended
                yield Facts.model_validate_json(line)

    def close(self) -> None:
        """See `Source.close`."""
        self._runner.close()


class Watch:
    """A context manager that watches. `lowest` is the least MemAvailable of each node, in GiB."""

    def __init__(self, source: Source, plan: Plan | None = None) -> None:
        guard = plan.guard if plan else None
        self._line_kib = guard.steady.line_mib << 10 if guard else 0
        self._source = source
        self._latest: dict[str, Facts] = {}
        self._before: Mapping[str, Facts] = {}
        self._stop: SparkserveError | None = None
        self._ended = threading.Event()
        self._tell: Callable[[], object] = lambda: None
        self._threads = [
            threading.Thread(target=self._follow, args=(name,), daemon=True) for name in source.names
        ]
        self.lowest: dict[str, float] = {}
        self._swap: dict[str, tuple[int, int]] = {}  # KiB at first, and the most beyond that

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            while thread.is_alive():
                self._source.close()  # again: a command may just have begun
                thread.join(JOIN_S)

    async def guarded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """`work`, until a node has too little memory, or is not seen. Raises `BENCH.MEMORY`, `NODE.*`."""
        task = asyncio.create_task(work)
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        self._tell = cancel
        if self._stop is not None:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self._stop is None:
                raise
            raise self._stop from None
        finally:
            self._tell = lambda: None

    def slow(self) -> str | None:
        """Why a node was not itself since the last call; None when all were."""
        before, self._before = self._before, dict(self._latest)
        found = [
            f"{name}: {why}"
            for name, now in self._before.items()
            if name in before and (why := why_slow(before[name], now))
        ]
        return "; ".join(found) or None

    def notes(self) -> list[str]:
        """Which nodes swapped: what is on a disk is not as fast as it was."""
        grown = [name for name, (_, most) in self._swap.items() if most / GIB_KIB > SWAPPED_GIB]
        return [f"{name}: its swap grew while it was measured" for name in grown]

    def _follow(self, name: str) -> None:
        try:
            for facts in self._source.follow(name):
                self._see(name, facts)
        except (SparkserveError, OSError, ValueError) as error:
            self._halt(error if isinstance(error, SparkserveError) else _unseen(name, str(error)))
        else:
            self._halt(_unseen(name, "its watch ended"))

    def _see(self, name: str, facts: Facts) -> None:
        self._latest[name] = facts
        gib = facts.available_kib / GIB_KIB
        self.lowest[name] = min(self.lowest.get(name, gib), gib)
        first, _ = self._swap.get(name, (facts.swap_kib, 0))
        self._swap[name] = (first, max(self._swap.get(name, (0, 0))[1], facts.swap_kib - first))
        least = self._line_kib + min(MARGIN_KIB, facts.total_kib // SHARE)
        if facts.available_kib < least:
            self._halt(_low(name, gib, least / GIB_KIB, guarded=self._line_kib > 0))

    def _halt(self, error: SparkserveError) -> None:
        if self._stop is None and not self._ended.is_set():
            self._stop = error
            self._tell()


def why_slow(before: Facts, now: Facts) -> str | None:
    """What slowed a node down between two looks; None for nothing."""
    if (events := now.throttled - before.throttled) > 0:
        return f"its cores were throttled {events} times"
    ticks = now.ticks - before.ticks
    if ticks > 0 and (share := (now.stolen - before.stolen) / ticks) > STOLEN:
        return f"its hypervisor gave {share:.0%} of its time to others"
    if now.gpu is None:
        return None
    if now.gpu.slowed:
        return f"its GPU is slowed down: {', '.join(now.gpu.slowed)}"
    if (now.gpu.utilization or 0.0) < BUSY:
        return None
    if now.gpu.clock_mhz is not None and now.gpu.clock_mhz < LATCHED_MHZ:
        return f"its GPU stays at {now.gpu.clock_mhz:.0f} MHz: unplug it for a minute (power latch)"
    if now.gpu.power_w is not None and now.gpu.power_w < WAITING_W:
        return f"its GPU takes {now.gpu.power_w:.0f} W at {now.gpu.utilization:.0f} %: it waits for others"
    return None


def _low(name: str, gib: float, least: float, *, guarded: bool) -> SparkserveError:
    killer = "the memory guard" if guarded else "the kernel"
    return SparkserveError(
        "BENCH.MEMORY",
        expected=f"at least {least:.2f} GiB of MemAvailable",
        found=f"{gib:.2f} GiB; a little less, and {killer} kills",
        where=name,
        do="Measure fewer streams or shorter prompts, or give the engine less memory; "
        "what was measured is saved.",
    )


def _unseen(name: str, found: str) -> SparkserveError:
    return SparkserveError(
        "NODE.UNREACHABLE",
        expected="a look at MemAvailable each second",
        found=found,
        where=name,
        do="Look whether it is on and on its network: ./sparkserve status --fleet FLEET asks all nodes.",
    )
