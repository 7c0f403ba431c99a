"""One boot of the group as the controller sees it: who has come how far, and what ends it.

Pure: no clock, no sockets.
Whatever goes wrong raises `Over`, with the rank's name in the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkserve.group import phases, protocol

if TYPE_CHECKING:
    from sparkserve.plan import Plan


class Over(Exception):  # noqa: N818 - an end, not always an error
    """The boot ends: a sentence, and lines of the log of the rank at fault.

    `again` is whether another one may go better by itself. `victim`: that rank only lost another one, which
    may be slower to say so than its peers are to notice.
    """

    def __init__(self, reason: str, *, log: str = "", again: bool = True, victim: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = log
        self.again = again
        self.victim = victim


# What gloo and NCCL log on a rank whose peer is gone.
_LOST_A_PEER = ("Connection closed by peer", "Connection reset by peer", "remote process exited")


@dataclass
class _Rank:
    phase: int | None = None
    since: float = 0.0
    armed: dict[str, str] = field(default_factory=dict)  # adapter to the digest it agreed on


class Boot:
    """A boot of the group of `plan`. Times are seconds of one monotonic clock."""

    def __init__(self, plan: Plan, number: int, began: float) -> None:
        self.number = number
        self._plan = plan
        self._names = [f"rank {node.rank} ({node.name})" for node in plan.fleet.nodes]
        self._ranks = [_Rank() for _ in plan.fleet.nodes]
        self._limit = plan.serving.ready_timeout_s
        self._began = began
        self.phase = -1  # the least of the ranks' phases; the group is where its last rank is
        self.phase_since = began

    def take(self, rank: int, message: protocol.Message, now: float) -> None:
        """A message of `rank` about this boot. Raises `Over`."""
        name = self._names[rank]
        match message:
            case protocol.Started():
                self._reach(rank, 0, now)
            case protocol.Reached():
                self._reach(rank, phases.NAMES.index(message.phase), now)
            case protocol.Adapter():
                self._adapter(rank, message.line)
            case protocol.Beat() if message.trouble:
                raise Over(f"{name}: {message.trouble}")
            case protocol.Ended():
                victim = any(mark in message.log for mark in _LOST_A_PEER)
                raise Over(f"{name}: {message.reason}", log=message.log, victim=victim)
            case protocol.Bye():
                raise Over(f"{name}: {message.reason}")

    def tick(self, now: float) -> None:
        """Look at the timers. Raises `Over`, naming the ranks that are behind: the others wait for them."""
        if self.ready():
            return
        phase = phases.PHASES[max(0, self.phase)]
        limit = min(phase.share * self._limit, self._limit - (self.phase_since - self._began))
        if now - self.phase_since <= limit:
            return
        behind = [
            self._names[number] for number, rank in enumerate(self._ranks) if self._of(rank) == self.phase
        ]
        raise Over(f"{' and '.join(behind)} stuck in: {phase.name} ({now - self.phase_since:.0f} s)")

    def ready(self) -> bool:
        """Whether every rank is ready. Raises `Over` when one is, and an adapter of it never said "armed"."""
        if self.phase < phases.READY:
            return False
        wanted = [adapter.name for adapter in self._plan.adapters]
        for number, rank in enumerate(self._ranks):
            missing = [name for name in wanted if name not in rank.armed]
            if missing:
                raise Over(f"{self._names[number]}: not armed: {', '.join(missing)}", again=False)
        for name in wanted:
            digests = {rank.armed[name] for rank in self._ranks}
            if len(digests) > 1:
                raise Over(f"the ranks armed different settings of {name}", again=False)
        return True

    def of(self, rank: int) -> tuple[str | None, float, tuple[str, ...]]:
        """A rank's phase (None before its start), since when, and its armed adapters."""
        state = self._ranks[rank]
        return (
            None if state.phase is None else phases.NAMES[state.phase],
            state.since,
            tuple(sorted(state.armed)),
        )

    def _of(self, rank: _Rank) -> int:
        return -1 if rank.phase is None else rank.phase

    def _reach(self, number: int, phase: int, now: float) -> None:
        rank = self._ranks[number]
        if phase <= self._of(rank):
            return
        rank.phase, rank.since = phase, now
        least = min(self._of(each) for each in self._ranks)
        if least > self.phase:
            self.phase, self.phase_since = least, now

    def _adapter(self, number: int, line: dict[str, object]) -> None:
        adapter, event = line.get("adapter"), line.get("event")
        if event == "armed":
            self._ranks[number].armed[str(adapter)] = str(line.get("group", ""))
            return
        reason = str(line.get("reason", "it gives no reason"))
        what = f"adapter {adapter} {event}" if adapter else f"adapters {event}"
        # An adapter that failed while serving did so for a cause outside; one that refused will refuse again.
        # Only a failure that names peers is somebody else's.
        victim = event == "failed" and bool(line.get("peers"))
        raise Over(f"{self._names[number]}: {what}: {reason}", again=event == "failed", victim=victim)
