"""The phases of a start, in order, and how long the group may stay in each."""

from __future__ import annotations

from typing import NamedTuple


class Phase(NamedTuple):
    """A phase of a rank's start: the text in its engine's log that begins it ("" for the first).

    `share` is the part of `serving.ready_timeout_s` that the group may stay in it, counted from when its last
    rank came to it: the ranks wait for each other, so a rank that is ahead is never the one to blame.
    """

    name: str
    needle: str
    share: float


# On two cores that three ranks share, importing took 60 of 90 s. What follows takes seconds there; on a Spark
# it is loading weights that takes minutes.
PHASES = (
    Phase("importing", "", 0.6),
    Phase("joining the other ranks", "Init torch distributed begin", 0.25),
    Phase("loading weights", "Load weight begin", 0.7),
    Phase("allocating the KV cache", "Load weight end", 0.4),
    Phase("starting to listen", "KV Cache is allocated", 0.3),
    Phase("ready", "Uvicorn running on", 0.3),
)
READY = len(PHASES) - 1
NAMES = tuple(phase.name for phase in PHASES)


def reached(line: str, now: int) -> int:
    """The phase after `line` of the log of a rank that is in phase `now`; never an earlier one."""
    for number in range(READY, now, -1):
        if PHASES[number].needle in line:
            return number
    return now
