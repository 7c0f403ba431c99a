"""What a node says of itself while it is measured: memory each second, and whether it is slowed down.

`nvidia-smi` is asked every 10 s at most: every 2 s on all nodes cost a step 0.6 ms (issue F07).
"""

from __future__ import annotations

import csv
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVERY_S = 1.0
GPU_EVERY_S = 10.0
_FIELDS = (
    *("utilization.gpu", "power.draw", "clocks.sm"),
    *("clocks_event_reasons.hw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown"),
    "clocks_event_reasons.hw_power_brake_slowdown",
)
_QUERY = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")


class Gpu(BaseModel):
    """Percent, watts, MHz, and the reasons for slower clocks that the driver names. None: it does not say."""

    model_config = ConfigDict(frozen=True)
    utilization: float | None
    power_w: float | None
    clock_mhz: float | None
    slowed: tuple[str, ...]


class Facts(BaseModel):
    """One look at a node; memory in KiB, `swap_kib` is used swap.

    `throttled` counts the thermal events of all cores since the kernel's start, `stolen` the ticks of `ticks`
    that a hypervisor gave to others. `gpu` is at most 10 s old, None on a node without.
    """

    model_config = ConfigDict(frozen=True)  # not strict: nodes may run a later version than who asks
    available_kib: int
    total_kib: int
    swap_kib: int
    throttled: int
    stolen: int
    ticks: int
    gpu: Gpu | None = None


def look(proc: Path = Path("/proc"), sys: Path = Path("/sys"), gpu: Gpu | None = None) -> Facts:
    """This node now. Raises OSError and ValueError where /proc is not Linux's."""
    memory = {}
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        memory[name] = int(value.split()[0])
    # user nice system idle iowait irq softirq steal; guests are in user and nice already.
    ticks = [int(value) for value in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    counts = (sys / "devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    return Facts(
        available_kib=memory["MemAvailable"],
        total_kib=memory["MemTotal"],
        swap_kib=memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
        throttled=sum(int(path.read_text()) for path in counts),
        stolen=ticks[7],
        ticks=sum(ticks),
        gpu=gpu,
    )


def follow(ended: Callable[[float], bool]) -> Iterator[Facts]:
    """This node each second, until `ended(seconds)`, which waits that long, says True."""
    gpu, asked = None, -GPU_EVERY_S
    while True:
        if time.monotonic() - asked >= GPU_EVERY_S:
            gpu, asked = ask_gpu(), time.monotonic()
        yield look(gpu=gpu)
        if ended(EVERY_S):
            return


def ask_gpu() -> Gpu | None:
    """The first GPU of this machine; None without, or when its driver does not answer in time."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/bin"}
    try:
        done = subprocess.run(
            _QUERY, capture_output=True, text=True, timeout=GPU_EVERY_S, check=True, env=env
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_gpu(done.stdout)


def parse_gpu(text: str) -> Gpu | None:
    """The first line of nvidia-smi's answer; unified memory says [N/A] to much (issue I02)."""
    rows = [[value.strip() for value in row] for row in csv.reader(text.splitlines())]
    if not rows or len(rows[0]) != len(_FIELDS):
        return None
    numbers, reasons = rows[0][:3], rows[0][3:]
    names = [field.rpartition(".")[2] for field in _FIELDS[3:]]
    return Gpu(
        utilization=_number(numbers[0]),
        power_w=_number(numbers[1]),
        clock_mhz=_number(numbers[2]),
        slowed=tuple(name for name, said in zip(names, reasons, strict=True) if said == "Active"),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
