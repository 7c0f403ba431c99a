"""The supervisor of one rank: does what the controller says, and tells it what happens on this node.

Without a controller there is no engine: when the connection ends, the engine is killed at once. A rank of a
group that lost a member only waits in a collective.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sparkserve.engine import log
from sparkserve.errors import SparkserveError
from sparkserve.group import boot_logs, preflight, protocol, run_files
from sparkserve.group.channel import connect
from sparkserve.group.engine import RankEngine
from sparkserve.group.identity import identity
from sparkserve.group.launch import LOOPBACK, parts
from sparkserve.group.links import Carriers
from sparkserve.group.phases import NAMES, READY
from sparkserve.guard.engine import EngineGuard
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from sparkserve.engine.closure import Closure
    from sparkserve.group.channel import Channel
    from sparkserve.plan import Plan

CONNECT_S = 3.0
RETRY_S = 1.0
# All supervisors are started at once, so the controller listens soon: for so long we ask for it so often.
SOON_S, SOON_RETRY_S = 10.0, 0.2
LOOK_S = 0.1  # how often the engine's log and process are looked at


def _guard(plan: Plan, closure: Closure, run: Path) -> EngineGuard | None:
    if plan.guard is None:
        return None
    if closure.guard is None:
        raise SparkserveError(
            "PLAN.SCHEMA",
            expected="the program of the memory guard that the plan has",
            found="none",
            where="closure.json",
            do="Build the closure again: no engine runs without the guard of its plan.",
        )
    return EngineGuard(plan.guard, closure.guard, run)


class Supervisor:
    """One rank's. `run` is where its state for other processes goes (a tmpfs), `logs` where logs stay.

    Raises `PLAN.SCHEMA` for a closure without its plan's guard, OSError when the engine can have no cgroup.
    """

    def __init__(self, plan: Plan, closure: Closure, *, run: Path, logs: Path) -> None:
        self._plan = plan
        self._closure = closure
        self._file = run / run_files.RANK.name
        self._logs = logs
        self._carriers = Carriers(parts(plan)[0].links)
        self._engine: RankEngine | None = None
        self._guard = _guard(plan, closure, run)
        self._number = 0
        self._work: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Connect to the controller, again and again, until cancelled. The engine ends with it."""
        head = str(self._plan.fleet.nodes[0].address)
        fabric, group = parts(self._plan)
        said = ""
        begin = time.monotonic()
        try:
            while True:
                again = RETRY_S
                try:
                    source = str(fabric.management.address)
                    channel = await connect(head, group.control_port, CONNECT_S, source)
                    said = await self._follow(channel) or said
                except (OSError, TimeoutError) as error:
                    again = SOON_RETRY_S if time.monotonic() - begin < SOON_S else RETRY_S
                    problem = f"no controller at {head}:{group.control_port}: {error or 'no answer'}"
                    if problem != said:
                        console.print(problem, markup=False)
                    said = problem
                await asyncio.sleep(again)
        finally:
            self._kill("the supervisor stops")

    async def _follow(self, channel: Channel) -> str | None:
        """One connection to its end. Returns the reason when the controller refuses this rank."""
        try:
            await channel.send(self._hello())
            console.print(f"Connected to the controller at {channel.peer}.")
            self._spawn(channel, self._beat(channel))
            while (message := await channel.receive()) is not None:
                match message:
                    case protocol.Refused():
                        console.print(f"Refused: {message.reason}", markup=False)
                        return message.reason
                    case protocol.Preflight():
                        self._spawn(channel, self._check(channel, message))
                    case protocol.Start():
                        await self._start(channel, message)
                    case protocol.Stop():
                        self._spawn(channel, self._stop(channel, message))
        except protocol.ProtocolError as error:
            console.print(f"The controller said {error}", markup=False)
        except asyncio.CancelledError:
            with suppress(OSError, TimeoutError):
                killed = await self._guard.verdict() if self._guard and self._engine else None
                await channel.send(protocol.Bye(reason=killed or "its supervisor was stopped"))
            raise
        finally:
            for task in self._work:
                task.cancel()
            self._kill("the controller is gone")
            await channel.close()
        return None

    def _hello(self) -> protocol.Hello:
        return protocol.Hello(
            rank=self._plan.node.rank,
            node=self._plan.node.name,
            fleet_id=self._closure.fleet_id,
            runs=identity(self._plan, self._closure),
        )

    def _spawn(self, channel: Channel, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                # Nobody does this work any more, so the rank must not look well: its engine ends.
                if not isinstance(error, OSError):  # as of a connection that ended
                    console.print(traceback.format_exc(), markup=False)
                with suppress(OSError):
                    await channel.send(protocol.Bye(reason=f"its supervisor failed: {error!r}"))
                await channel.close()

        task = asyncio.create_task(guarded())
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _beat(self, channel: Channel) -> None:
        while True:
            engine = self._engine
            quiet = time.monotonic() - engine.quiet_since if engine else None
            await channel.send(protocol.Beat(trouble=self._carriers.trouble(), quiet_s=quiet))
            if engine is not None and engine is self._engine and (trouble := engine.trouble()):
                await channel.send(await self._ended(engine, trouble))
            await asyncio.sleep(protocol.BEAT_S)

    async def _check(self, channel: Channel, order: protocol.Preflight) -> None:
        problems = ["its engine still runs"] if self._engine else []
        try:
            problems = problems or await preflight.check(self._plan, self._closure, order, self._logs)
        except OSError as error:
            problems = [str(error)]
        if self._guard is not None and (hindrance := self._guard.hindrance()) is not None:
            problems.append(hindrance)
        await channel.send(protocol.Checked(number=order.number, problems=tuple(problems)))

    async def _start(self, channel: Channel, order: protocol.Start) -> None:
        self._kill("a new boot begins")
        try:
            folder = boot_logs.make(self._logs, order.number)
            if self._guard is not None:
                self._guard.starts()
            prefix = self._guard.prefix() if self._guard else []
            engine = self._engine = RankEngine(self._plan, self._closure, folder, order.port, prefix)
        except (OSError, SparkserveError) as error:
            if self._guard is not None:
                self._guard.ended()
            await channel.send(
                protocol.Ended(number=order.number, reason=f"its engine did not start: {error}")
            )
            return
        self._number = order.number
        await engine.enter()
        run_files.note_engine(self._file, order.number, engine.launcher)
        console.print(f"Boot {order.number}: the engine runs, log {engine.log}")
        await channel.send(protocol.Started(number=order.number))
        self._spawn(channel, self._watch(channel, engine, order.number))

    async def _watch(self, channel: Channel, engine: RankEngine, number: int) -> None:
        """Tell what happens to the engine, until it ends or is replaced."""
        phase = -1
        armed: dict[str, str] = {}
        while self._engine is engine:
            for line in engine.read():
                if line.get("event") == "armed" and self._engine is engine:
                    armed[str(line.get("adapter"))] = str(line.get("group", ""))
                    with suppress(OSError):  # a full /run must not end the watch
                        run_files.note_engine(self._file, number, engine.launcher, armed)
                await channel.send(protocol.Adapter(number=number, line=line))
            if engine.phase == READY - 1 and await asyncio.to_thread(self._listens):
                engine.phase = READY  # the log of a rank that is not the head does not say it
            if engine.phase != phase:
                phase = engine.phase
                if phase == READY and self._guard is not None:
                    self._guard.serves()
                await channel.send(protocol.Reached(number=number, phase=NAMES[phase]))
            reason = engine.ended()
            if reason is None and self._guard is not None and not self._guard.watches():
                reason = "its memory guard is gone"
            if reason is not None and self._engine is engine:
                for line in engine.read():
                    await channel.send(protocol.Adapter(number=number, line=line))
                self._kill(reason)
                await channel.send(await self._ended(engine, reason))
            await asyncio.sleep(LOOK_S)

    async def _ended(self, engine: RankEngine, reason: str) -> protocol.Ended:
        killed = await self._guard.verdict() if self._guard else None
        return protocol.Ended(number=self._number, reason=killed or reason, log=log.tail(engine.log))

    def _listens(self) -> bool:
        from sparkserve.engine import chat  # only now: httpx is a third of a supervisor's start

        _, group = parts(self._plan)
        try:
            chat.health(f"http://{LOOPBACK}:{group.engine_port}", timeout_s=2.0)
        except chat.ChatError:
            return False
        return True

    async def _stop(self, channel: Channel, order: protocol.Stop) -> None:
        self._kill("told to stop")
        await channel.send(protocol.Stopped(number=order.number))

    def _kill(self, why: str) -> None:
        """End the engine, if there is one. Nothing of it is left then."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        console.print(f"Boot {self._number}: the engine ends: {why}", markup=False)
        if not engine.kill():
            console.print("Something of it hangs in the kernel; the next boot will be refused.")
        elif self._guard is not None:
            self._guard.ended()
        run_files.note_engine(self._file, self._number, None)
