"""The machine that measures, as far as it explains a result."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkserve import __version__


def describe() -> dict[str, Any]:
    """Processor, cores, memory in GiB, kernel, load now, version, and Python, whose library the texts are."""
    found: dict[str, Any] = {
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "python": ".".join(map(str, sys.version_info[:3])),
        "sparkserve": __version__,
    }
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                found["processor"] = line.partition(":")[2].strip()
                break
        total = Path("/proc/meminfo").read_text().split("MemTotal:", 1)[1].split()[0]
        found["memory_gib"] = round(int(total) / 2**20, 1)
    return found


def busy() -> str | None:
    """That others work on this machine too, in words; None when they do not."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"this machine had a load of {load:.1f} on {cores} cores before" if load > cores else None
