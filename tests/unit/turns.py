"""Threads of which one runs at a time. Where one gives the others their turn, a seed says who goes on.

So a thousand seeds meet a thousand orders of what nodes do at the same time, and each can be repeated.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable


class Turns:
    """All threads that `random_` chooses from. Each waits for its own semaphore."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self._now = 0  # how often somebody was chosen
        self._ready: list[tuple[int, threading.Semaphore]] = []  # each from when on it may be chosen
        self._errors: list[BaseException] = []

    @property
    def alone(self) -> bool:
        """Whether no other thread could go on."""
        return not self._ready

    def give(self) -> None:
        """Let any thread go on, perhaps this one; return when it is this one's turn, or much later."""
        mine = threading.Semaphore(0)
        # Chosen evenly, none would ever fall behind by as much as all that another one does.
        late = self._random.randrange(60) if self._random.random() < 0.1 else 0
        self._ready.append((self._now + late, mine))
        self._next()
        mine.acquire()

    def beside(self, work: Callable[[], object]) -> None:
        """Let a new thread do `work`, from some later turn on. What it raises is raised by `end`."""
        turn = threading.Semaphore(0)

        def run() -> None:
            turn.acquire()
            try:
                work()
            except BaseException as error:
                self._errors.append(error)
            self._next()

        self._ready.append((self._now, turn))
        threading.Thread(target=run, daemon=True).start()

    def all(self, works: Iterable[Callable[[], object]], until: type[BaseException]) -> list[BaseException]:
        """Do all `works` beside each other, and return their errors, in their order.

        After an error of the kind `until` it returns at once: the others go on as long as they can.
        """
        errors: dict[int, BaseException] = {}
        waiting = [threading.Semaphore(0)]
        left = 0

        def one(number: int, work: Callable[[], object]) -> None:
            nonlocal left
            try:
                work()
            except BaseException as error:
                errors[number] = error
            left -= 1
            if waiting and (not left or isinstance(errors.get(number), until)):
                self._ready.append((self._now, waiting.pop()))

        turn = waiting[0]
        for number, work in enumerate(works):
            left += 1
            self.beside(partial(one, number, work))
        if left:
            self._next()
            turn.acquire()
        return [error for _, error in sorted(errors.items(), key=lambda item: item[0])]

    def end(self) -> None:
        """Return when no other thread is left that could go on. Raises the first error of those `beside`."""
        while self._ready:
            self.give()
        if self._errors:
            raise self._errors[0]

    def _next(self) -> None:
        if not self._ready:
            return
        self._now = max(self._now + 1, min(due for due, _ in self._ready))
        chosen = self._random.choice([each for each in self._ready if each[0] <= self._now])
        self._ready.remove(chosen)
        chosen[1].release()
