"""A point before it is measured: what to send in each round, and what to make of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from sparkserve.bench.workloads.texts import Kind
    from sparkserve.client.reply import Reply

    Measure = Callable[
        [Sequence[Reply], Mapping[str, float], Mapping[str, float]], Mapping[str, Mapping[str, float]]
    ]


@dataclass(frozen=True)
class Task:
    """One case at one number of streams.

    `send(round)` sends one sample; round -1 is the warm-up. `measure(replies, growth, gauges)` gives the
    metrics of each of `cases`, which are several where one sample has several phases. `prompts` are the
    sha256 in the order of sending; it may grow. `least` is the fewest samples. `beside` are
    requests of ours that run at once with the streams. `may_fail`: failed requests
    are a result, not a reason to repeat. `notes()` is what a reader must know of the samples so far.
    """

    cases: tuple[str, ...]
    streams: int
    text: Kind
    prompts: Sequence[str]
    send: Callable[[int], Awaitable[list[Reply]]]
    measure: Measure
    least: int = 1
    beside: int = 0
    may_fail: bool = False
    notes: Callable[[], Sequence[str]] = tuple

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its points."""
        return tuple(f"{case}-c{self.streams}" for case in self.cases)
