"""The GPU as nvidia-smi has it, asked every 10 s at most: every 2 s on all nodes cost 0.6 ms of each step."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from sparkserve.metrics.families import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S = 10.0
OLD_S = 30.0  # what was asked longer ago says nothing of now
PATIENCE_S = 2.0  # a scrape waits so long; nvidia-smi takes 50 ms, and for ever when the driver hangs

# Field of nvidia-smi, name, and what one of its units is in ours.
_FIELDS = (
    ("utilization.gpu", "sparkserve_gpu_use_ratio", 0.01),
    ("power.draw", "sparkserve_gpu_power_watts", 1.0),
    ("clocks.sm", "sparkserve_gpu_clock_hertz", 1e6),
    ("temperature.gpu", "sparkserve_gpu_temperature_celsius", 1.0),
)
QUERY = (
    "nvidia-smi",
    f"--query-gpu={','.join(field for field, _, _ in _FIELDS)}",
    "--format=csv,noheader,nounits",
)


def _ask() -> str:
    """What it prints; "" where it is not there or fails."""
    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, timeout=OLD_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class Gpu:
    """Asks when somebody wants to know, in a thread of its own: one that hangs stops nobody."""

    def __init__(self, ask: Callable[[], str] = _ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._asking: threading.Thread | None = None
        self._asked = float("-inf")
        self._found: list[Sample] = []
        self._at = float("-inf")

    def samples(self) -> list[Sample]:
        """The last answer, none when it is too old. Not for several threads at a time."""
        if self._clock() - self._asked >= EVERY_S and not (self._asking and self._asking.is_alive()):
            self._asked = self._clock()
            self._asking = threading.Thread(target=self._look, daemon=True)
            self._asking.start()
        if self._asking:
            self._asking.join(PATIENCE_S)
        return self._found if self._clock() - self._at < OLD_S else []

    def _look(self) -> None:
        asked = self._clock()
        self._found, self._at = _parse(self._ask()), asked


def _parse(printed: str) -> list[Sample]:
    """One GPU's line. What a Spark does not measure is [N/A] there, and left out."""
    lines = printed.strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if len(lines) == 1 else []
    found = []
    for (_, name, unit), value in zip(_FIELDS, values, strict=False):
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            found.append(Sample(name, number * unit))
    return found if len(values) == len(_FIELDS) else []
