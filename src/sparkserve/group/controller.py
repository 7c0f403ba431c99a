"""The group controller, one per fleet, in the head's supervisor: starts and stops all ranks as one.

A boot is: preflight on all ranks at once, workers started, then the head, all ready, all adapters armed, one
right answer from the engine. Whatever goes wrong on one rank ends it on all. A group that fails is started
again until `start_limit`; then it stays down, and every node stays reachable.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sparkserve.front import state as files
from sparkserve.group import memory, phases, protocol
from sparkserve.group.boot import Boot, Over
from sparkserve.group.launch import LOOPBACK, meeting_port, parts
from sparkserve.group.members import Members
from sparkserve.group.report import FrontWatch, status
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.engine.closure import Closure
    from sparkserve.plan import Plan

TICK_S = 0.25
PREFLIGHT_S = 10.0
RETRY_S = 3.0  # from one boot's end to the next's begin
DRAIN_S = 30.0  # for the requests in flight
STOP_S = 12.0  # for the ranks to say that nothing is left
CAUSE_S = 2 * protocol.BEAT_S  # until every rank has told of what it lost, or of itself
HANG = 3  # times lost_s without a token until a boot ends; after once, clients are refused
TOKEN_SHARE = 0.3  # of ready_timeout_s, for the first answer


class Controller:
    """Of the fleet of `plan`. `run` holds group.json and front.json (a tmpfs), `state` what must last."""

    def __init__(self, plan: Plan, closure: Closure, *, run: Path, state: Path) -> None:
        self.plan = plan
        self.closure = closure
        self.members = Members(plan, closure, self._answer)
        self._group = parts(plan)[1]
        self._ranks = range(self._group.size)
        self._file = run / "group.json"
        self._front = FrontWatch(run / "front.json")
        self._memory_file = state / "group.json"
        self.memory = memory.load(self._memory_file).interrupted("the head's supervisor died, or its node")
        self.state = files.Group(state="down")
        self.boot: Boot | None = None
        self._not_before = 0.0
        self._last = self.memory.starts[-1].reason if self.memory.starts else ""
        self._woken = asyncio.Event()

    async def serve(self, listening: Callable[[], None] = lambda: None) -> None:
        """Listen, say so, and run boots until cancelled; then nothing runs.

        Raises OSError when the port is taken.
        """
        server = await self.members.listen()
        listening()
        try:
            while True:
                hindrance = self._hindrance()
                if hindrance is None:
                    await self._run()
                    continue
                self._say("down", hindrance)
                self._woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):
                        await self._woken.wait()
                while not self.members.events.empty():
                    self.members.events.get_nowait()
        finally:
            server.close()
            self._say("down", "the head's supervisor is stopped")

    def _answer(self, ask: protocol.Ask) -> protocol.Status:
        """Do what an operator asks."""
        if ask.what != "status":
            console.print(f"An operator says: {ask.what}.")
            wanted = ask.what == "start"
            fields: dict[str, object] = {
                "wanted": wanted,
                "reason": "" if wanted else "stopped by an operator",
            }
            if wanted:
                fields["forgiven"] = self.memory.number
                self._not_before = 0.0
            self._remember(self.memory.model_copy(update=fields))
            self._woken.set()
        return status(self)

    def _hindrance(self) -> str | None:
        """Why no boot can begin now."""
        if not self.memory.wanted:
            return self.memory.reason or "stopped"
        last = f"; before that: {self._last}" if self._last else ""
        if self.members.differing:
            return "; ".join(self.members.differing.values())
        missing = [self.members.name(rank) for rank in self._ranks if rank not in self.members.present]
        if missing:
            return f"{', '.join(missing)} not connected{last}"
        limit, window = self._group.start_limit, self._group.start_window_s
        if self.memory.recent(time.time(), window) >= limit:
            reason = f"given up after {limit} starts in {window} s{last}"
            console.print(f"{reason}. Nothing starts until an operator says so.", markup=False)
            self._remember(self.memory.model_copy(update={"wanted": False, "reason": reason}))
            return reason
        return self.state.reason if time.monotonic() < self._not_before else None

    async def _run(self) -> None:
        """One boot from its preflight to its end."""
        number = self.memory.number + 1
        self._remember(self.memory.model_copy(update={"number": number}))
        port = meeting_port(self.plan, number)
        token = secrets.token_hex(32)
        name = f"{number}-{token[:8]}"
        over = Over("the head's supervisor is stopped")
        try:
            self._say("starting", "preflight", name)
            await self._preflight(number, token, port)
            start = protocol.PastStart(number=number, at=time.time())
            self._remember(self.memory.started(start))
            self.boot = Boot(self.plan, number, time.monotonic())
            await self._start(number, port)
            await self._answers()
            self._remember(self.memory.changed(number, up_at=time.time()))
            self._say("up", "", name)
            while True:
                await self._step()
                if (
                    reason := self._front.hangs(name, HANG * self._group.lost_s, self._quiet_s())
                ) is not None:
                    raise Over(reason)
        except Over as ended:
            over = await self._cause(ended)
            if not self.memory.wanted:
                await self._drain(name)
        finally:
            console.print(f"Boot {number} ends: {over.reason}\n{over.log}".strip(), markup=False)
            self._last = over.reason
            end = {"ended_at": time.time(), "reason": over.reason, "log": over.log}
            self._remember(self.memory.changed(number, **end))
            if not over.again:
                reason = f"{over.reason} (it would fail again)"
                self._remember(self.memory.model_copy(update={"wanted": False, "reason": reason}))
            self._say("down", self.memory.reason or over.reason)
            await asyncio.shield(self._stop(number))
            self.boot = None
            self._not_before = time.monotonic() + RETRY_S

    async def _cause(self, over: Over) -> Over:
        """What came first when `over` is of a rank that lost a peer: the peer may say so a moment later."""
        deadline = time.monotonic() + CAUSE_S
        while over.victim and self.boot is not None and time.monotonic() < deadline:
            self._say("down", over.reason)
            try:
                await self._step()
            except Over as other:
                if not other.victim:
                    return other
        return over

    async def _preflight(self, number: int, token: str, port: int) -> None:
        """Ask all ranks at once whether a boot could begin. Raises `Over` with every rank's problems."""
        order = protocol.Preflight(number=number, token=token, port=port, seconds=PREFLIGHT_S)
        await self.members.send(self._ranks, order)
        problems: dict[int, tuple[str, ...]] = {}
        deadline = time.monotonic() + PREFLIGHT_S + 5.0
        while len(problems) < len(self._ranks):
            if time.monotonic() > deadline:
                silent = [self.members.name(rank) for rank in self._ranks if rank not in problems]
                raise Over(f"preflight: no word from {', '.join(silent)} in {PREFLIGHT_S + 5:.0f} s")
            rank, message = await self._next()
            if isinstance(message, protocol.Checked) and message.number == number:
                problems[rank] = message.problems
        found = [f"{self.members.name(rank)}: {each}" for rank in self._ranks for each in problems[rank]]
        if found:
            raise Over(f"preflight: {'; '.join(found)}")

    async def _start(self, number: int, port: int) -> None:
        """Start the workers' engines, then the head's, and wait until all are ready and armed."""
        order = protocol.Start(number=number, port=port)
        await self.members.send(self._ranks[1:], order)
        await self._until(lambda boot: all(boot.of(rank)[0] for rank in self._ranks[1:]))
        await self.members.send([0], order)
        await self._until(Boot.ready)

    async def _until(self, done: Callable[[Boot], bool]) -> None:
        said = -2
        while self.boot is not None and not done(self.boot):
            await self._step()
            if self.boot.phase != said:
                said = self.boot.phase
                self._say("starting", phases.NAMES[max(0, said)], self.state.boot)

    async def _answers(self) -> None:
        """Wait for one right answer of the whole group. Raises `Over` after its time."""
        from sparkserve.engine import chat  # as the supervisors do

        begin, seconds = time.monotonic(), TOKEN_SHARE * self.plan.serving.ready_timeout_s
        self._say("starting", "first token", self.state.boot)
        endpoint = f"http://{LOOPBACK}:{self._group.engine_port}"
        asked = asyncio.create_task(
            asyncio.to_thread(
                chat.complete,
                endpoint,
                self.plan.serving.model,
                "Say hello.",
                max_tokens=4,
                timeout_s=seconds,
            )
        )
        try:
            while not asked.done():
                await self._step()
            asked.result()
        except chat.ChatError as error:
            after = f"after {time.monotonic() - begin:.0f} s"
            raise Over(f"{self.members.name(0)}: no first token {after}: {error}") from None
        finally:
            asked.cancel()

    async def _step(self) -> None:
        """Take what the ranks say, for a moment. Raises `Over`."""
        boot = self.boot
        rank, message = await self._next()
        if boot is not None and getattr(message, "number", boot.number) == boot.number:
            boot.take(rank, message, time.monotonic())
        if boot is not None:
            boot.tick(time.monotonic())

    async def _next(self) -> tuple[int, protocol.Message]:
        """The next message of a rank; after a tick without one, an empty beat.

        Raises `Over` when a rank is gone or silent, or nobody wants the group any more.
        """
        if not self.memory.wanted:
            raise Over("stopped by an operator")
        limit = self._group.lost_s / 2
        # What a rank said before its connection was lost says why.
        for rank in self._ranks if self.members.events.empty() else ():
            member = self.members.present.get(rank)
            if member is None:
                raise Over(f"{self.members.name(rank)}: its connection was lost")
            if time.monotonic() - member.seen > limit:
                await self.members.drop(rank)
                raise Over(
                    f"{self.members.name(rank)}: silent for {limit:.0f} s (frozen, or off the network)"
                )
        try:
            async with asyncio.timeout(TICK_S):
                rank, message = await self.members.events.get()
        except TimeoutError:
            return 0, protocol.Beat()
        if isinstance(message, protocol.Bye):
            raise Over(f"{self.members.name(rank)}: {message.reason}")
        return rank, message

    async def _drain(self, name: str) -> None:
        """Let requests in flight end; the front takes no new ones."""
        if self.state.state == "up":
            self._say("draining", "stopped by an operator", name)
            deadline = time.monotonic() + DRAIN_S
            while self._front.in_flight(name) and time.monotonic() < deadline:
                await asyncio.sleep(TICK_S)

    async def _stop(self, number: int) -> None:
        """End what runs on all ranks; let go of those that do not say that they did."""
        waiting = set(self.members.present)
        await self.members.send(waiting, protocol.Stop(number=number))
        deadline = time.monotonic() + STOP_S
        while waiting and time.monotonic() < deadline:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    rank, message = await self.members.events.get()
                if isinstance(message, protocol.Bye | protocol.Stopped):
                    waiting.discard(rank)
            waiting &= set(self.members.present)
        for rank in waiting:
            console.print(f"{self.members.name(rank)} does not say that it stopped; its connection is ended.")
            await self.members.drop(rank)

    def _quiet_s(self) -> float:
        """Seconds since any rank's engine last logged something."""
        quiet = [member.beat.quiet_s for member in self.members.present.values()]
        return min((each for each in quiet if each is not None), default=0.0)

    def _say(self, state: files.State, reason: str, boot: str = "") -> None:
        """Tell the front and the journal, when it is new."""
        if (state, reason, boot) == (
            self.state.state,
            self.state.reason,
            self.state.boot,
        ) and self.state.since:
            return
        since = self.state.since if state == self.state.state and self.state.since else time.time()
        self.state = files.Group(state=state, reason=reason, boot=boot, since=since)
        console.print(f"The group is {state}{': ' if reason else ''}{reason}", markup=False)
        try:
            files.write(self._file, self.state)
        except OSError as error:
            console.print(f"{self._file}: {error}", markup=False)

    def _remember(self, new: memory.Memory) -> None:
        self.memory = new
        try:
            memory.save(self._memory_file, new)
        except OSError as error:  # a full disk must not take the controller down
            console.print(f"{self._memory_file}: {error}", markup=False)
