"""What a node's memory guard last wrote: /run/sparkserve/guard.json (pkgs/guard/src/report.c)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve.errors import SparkserveError

FILE = Path("/run/sparkserve/guard.json")
READS = 5  # the guard needs microseconds for a write
FRESH_S = 10.0  # it writes at every sample, and the longest interval is 5 s

Phase = Literal["startup", "steady"]


class Kill(BaseModel):
    """The last time that it killed the engine, and why; the memory is in KiB, None when it was unreadable.

    `gone_ms` is how long it then took until no process was left; None while there is one.
    """

    model_config = ConfigDict(frozen=True)
    phase: Phase
    floor_mib: int
    line_mib: int
    unix_ms: int
    available_kib: int | None
    gone_ms: int | None

    def words(self) -> str:
        """Why, in one sentence without its end."""
        if self.available_kib is None:
            return "the memory guard killed its engine: MemAvailable cannot be read"
        return (
            f"the memory guard killed its engine: MemAvailable {_gib(self.available_kib)}, below the line of "
            f"{_gib(self.line_mib << 10)} that keeps {_gib(self.floor_mib << 10)} free ({self.phase})"
        )


class State(BaseModel):
    """The last sample and what the guard remembers; memory in KiB, None for what was not seen yet.

    `engine`: the supervisor says that one runs. `reach`: the engine's cgroup is there. `lacks`: what the
    guard asked the kernel for and did not get.
    """

    # Not strict: a later guard may say more.
    model_config = ConfigDict(frozen=True)
    seq: int
    pid: int
    monotonic_ms: int
    phase: Phase
    floor_mib: int
    line_mib: int
    engine: bool
    reach: bool
    available_kib: int | None
    low_water_kib: int | None
    low_water_engine_kib: int | None
    kills: int
    kill: Kill | None
    lacks: tuple[str, ...]
    end: int

    @property
    def age_s(self) -> float:
        """Seconds since the last sample; only on the node itself."""
        return max(0.0, time.monotonic() - self.monotonic_ms / 1000)


def look(file: Path = FILE) -> State | None:
    """The state; None when no guard wrote one, or it cannot be understood."""
    try:
        return _read(file)
    except (OSError, ValidationError):
        return None


def read(file: Path = FILE) -> State:
    """The state. Raises `GUARD.STATE` when there is none, or its guard has stopped writing."""
    try:
        state = _read(file)
    except (OSError, ValidationError) as error:
        raise _wrong("the state of a memory guard", " ".join(str(error).split())[:200], file) from None
    if state.age_s > FRESH_S:
        raise _wrong(f"a sample of the last {FRESH_S:.0f} s", f"one {state.age_s:.0f} s old", file)
    return state


def _read(file: Path) -> State:
    """A whole state: both numbers are of one write. Raises OSError, ValidationError."""
    for _ in range(READS):
        try:
            state = State.model_validate_json(file.read_bytes())
        except ValidationError:
            time.sleep(0.001)
        else:
            if state.seq == state.end:
                return state
    return State.model_validate_json(file.read_bytes())


def _gib(kib: int) -> str:
    return f"{kib / (1 << 20):.2f} GiB"


def _wrong(expected: str, found: str, file: Path) -> SparkserveError:
    return SparkserveError(
        "GUARD.STATE",
        expected=expected,
        found=found,
        where=str(file),
        do="A guard runs on each node of a group: systemctl status sparkserve-guard, and ./sparkserve up.",
    )
