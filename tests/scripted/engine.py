"""The scheduler: one step gives each running request its next token, or several with speculation."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from scripted import logits, tokens
from scripted.cache import Cache
from scripted.counters import Counters
from scripted.plan import Piece, plan

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncGenerator

    from scripted.request import Request
    from scripted.script import Script


class Token(NamedTuple):
    """A piece that came, with its logprobs where they were asked for; NaN is None."""

    piece: Piece
    logprob: float | None = None
    top: tuple[tuple[float | None, int], ...] = ()


class Running:
    """One request from its arrival to its end."""

    def __init__(
        self, script: Script, request: Request, name: str, number: int, repetition: int, hit: tuple[int, str]
    ) -> None:
        self.request, self.number = request, number
        self.cached, owner = hit
        self.out: list[Token] = []
        self.finish = ""
        self.matched: int | str | None = None
        self.verified = self.proposed = self.accepted = 0
        self.resume = 0.0  # stalled until
        self.born, self.first = time.monotonic(), 0.0  # when it came, and its first token
        self.steps: asyncio.Queue[list[Token]] = asyncio.Queue()
        self._script = script
        faults = script.dice("fault", name, repetition)
        self.spoilt = faults.random() < script.share
        wrong = script.wrong_hit and self.spoilt and self.cached > 0 and owner
        prompt = owner if wrong else request.prompt
        drawn = (
            "greedy" if request.temperature == 0 else request.seed if request.seed is not None else repetition
        )
        text = script.text_dice(_name(prompt), drawn)
        self._plan = plan(script, request, prompt, text, faults if self.spoilt else None)
        self._noise = script.dice("drift", name, repetition if script.drift_when == "repeat" else "")
        self._drafts = script.dice("draft", name, drawn)
        self._ids = request.ids[-logits.WINDOW :]

    def step(self, others: int) -> None:
        """The next token or tokens."""
        script, ahead = self._script, 1
        if script.draft:
            while ahead <= script.draft and self._drafts.random() < script.accept:
                ahead += 1
            self.verified += 1
            self.proposed += script.draft
            self.accepted += ahead - 1
        new: list[Token] = []
        while len(new) < ahead and not self.finish:
            if len(self.out) < self.request.max_tokens:
                new.append(self._next(others))
                self.out.append(new[-1])
            self._judge()
        self.first = self.first or time.monotonic()
        self.steps.put_nowait(new)

    def _judge(self) -> None:
        """End, where it is the end."""
        if self.out and self.out[-1].piece.where == "end":
            self.finish, self.matched = "stop", tokens.EOS
        elif self.request.stop and (found := self._stopped()):
            self.finish, self.matched = "stop", found
        elif len(self.out) >= self.request.max_tokens:
            self.finish = "length"

    def _stopped(self) -> str:
        said = "".join(token.piece.text for token in self.out[-64:])
        return next((stop for stop in self.request.stop if stop in said), "")

    def _next(self, others: int) -> Token:
        script, piece = self._script, next(self._plan)
        drifts = bool(script.drift) and self.spoilt and self._drifts(others)
        token = Token(piece)
        if drifts or self.request.top >= 0:
            noise = self._noise if drifts else None
            likely = logits.candidates(self._ids, piece.id, noise, script.drift)
            logprob, chosen = likely[0]
            if chosen != piece.id:
                where = "content" if piece.where == "end" else piece.where
                piece = piece._replace(id=chosen, text=tokens.piece(chosen), where=where)
            null = self.spoilt and script.nan and len(self.out) >= script.nan_after
            top = [(None if null else value, number) for value, number in likely[: max(0, self.request.top)]]
            token = Token(piece, None if null else logprob, tuple(top))
        self._ids = [*self._ids[1 - logits.WINDOW :], piece.id]
        return token

    def _drifts(self, others: int) -> bool:
        when = self._script.drift_when
        return {"hit": self.cached > 0, "batched": others >= self._script.drift_batch}.get(when, True)


def _name(prompt: str) -> str:
    return sha256(prompt.encode(errors="replace")).hexdigest()


class Engine:
    """All requests of one start."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.cache = Cache(script.page)
        self.counters = Counters(script)
        self.running: list[Running] = []
        self.waiting: deque[Running] = deque()
        self._numbers = count(1)
        self._seen: Counter[str] = Counter()
        self._noise: random.Random = script.dice("noise", script.boot)
        self._boot = math.exp(script.boot_sd * script.dice("boot", script.boot).gauss(0, 1))
        self._clock: asyncio.Task[None] | None = None

    def start(self, request: Request) -> Running:
        """Let a request in."""
        name = _name(request.prompt)
        self._seen[name] += 1
        limit = len(request.ids) - 1
        if request.prompt_from >= 0:  # as SGLang: what must be scored is not taken from the cache
            limit = min(limit, request.prompt_from)
        hit = self.cache.match(request.ids, request.salt, limit)
        running = Running(self.script, request, name, next(self._numbers), self._seen[name], hit)
        self.waiting.append(running)
        if self._clock is None:
            self._clock = asyncio.get_running_loop().create_task(self._run())
        return running

    def stop(self) -> None:
        """No more steps."""
        if self._clock is not None:
            self._clock.cancel()

    async def steps(self, running: Running) -> AsyncGenerator[list[Token], None]:
        """What each step brings, to the end. Left early, the request is aborted."""
        whole = False
        try:
            while not (running.finish and running.steps.empty()):
                yield await running.steps.get()
            whole = True
            self.counters.finished(running)
        finally:
            if not whole:
                self.counters.add("num_aborted_requests_total", 1)
            for place in (self.running, self.waiting):
                with suppress(ValueError):
                    place.remove(running)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while self.running or self.waiting:
            due += self._admit() / 1000 + self.step_s()
            late = loop.time() - due
            due = max(due, loop.time() - 0.005)  # what one late step lost, the next ones do not make up
            await asyncio.sleep(max(0.0, -late))
            others = len(self.running) - 1
            moving = [running for running in self.running if loop.time() >= running.resume]
            for running in moving:
                running.step(others)
                self._stall(running)
                if running.finish:
                    self.running.remove(running)
                    ids = running.request.ids + [token.piece.id for token in running.out]
                    self.cache.insert(ids, running.request.salt, running.request.prompt)
            if not moving:
                await asyncio.sleep(0.001)  # all stalled
        self._clock = None

    def _stall(self, running: Running) -> None:
        script = self.script
        if script.stall_s and not running.resume and len(running.out) >= 8:
            running.resume = time.monotonic() + script.stall_s

    def _admit(self) -> float:
        """Milliseconds that the prefill of new requests takes."""
        cost = 0.0
        while self.waiting and len(self.running) < self.script.slots:
            running = self.waiting.popleft()
            cost += self.script.prefill_ms * (len(running.request.ids) - running.cached) / 1000
            self.running.append(running)
        return cost

    def step_s(self) -> float:
        """Seconds that the next step takes."""
        script = self.script
        noise = math.exp(script.noise_sd * self._noise.gauss(0, 1)) if script.noise_sd else 1.0
        return script.step_ms / 1000 * (1 + script.slow / 100) * self._boot * noise
