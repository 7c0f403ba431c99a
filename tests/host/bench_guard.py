"""How fast the memory guard kills, and what it costs: writes docs/results/guard.json. 8 minutes, root.

    PYTHONPATH=src python tests/host/bench_guard.py --guard RESULT/bin/guard --output docs/results/guard.json

Memory is made up, the cgroup and its processes are real: each writes the time into a page that the bench
sees, as often as it can. The last time there is the last moment at which it could have taken memory.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "guard"), str(HERE.parents[1] / "src")]

from guard_world import MIB, Levels, World  # noqa: E402

from sparkserve.guard import flags  # noqa: E402
from sparkserve.local import cgroups  # noqa: E402

# Of a Spark's plan (modules/guard.nix); a sample every 5 ms at the line, 45 ms for a kill.
STARTUP, STEADY = Levels(5120, 5520, 250), Levels(3072, 3472, 2000)
CLOSEST_MS, KILL_MS, RATE = 5, 45, 8000
PROCESSES, HELD_MIB = 4, 64
RUNS = 200

ENGINE = """
import mmap, struct, sys, time
file = open(sys.argv[1], "r+b")
page = mmap.mmap(file.fileno(), 4096)
held = bytearray(int(sys.argv[3]) << 20)
print(1, flush=True)
while True:
    struct.pack_into("d", page, int(sys.argv[2]), time.monotonic())
"""


class Engine:
    """Processes in the guard's cgroup that hold memory and run without rest."""

    def __init__(self, world: World) -> None:
        page = world.folder / "page"
        page.write_bytes(bytes(4096))
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 4096)
        enter = [world.program, "--enter", str(world.cgroup), sys.executable, "-c", ENGINE, str(page)]
        self.processes = [
            subprocess.Popen([*enter, str(8 * n), str(HELD_MIB)], stdout=subprocess.PIPE)
            for n in range(PROCESSES)
        ]
        for each in self.processes:
            assert each.stdout is not None
            each.stdout.readline()

    def lives(self) -> bool:
        """Whether any of it does."""
        return any(each.poll() is None for each in self.processes)

    def last(self) -> float:
        """When the last of them was last seen to run."""
        times = struct.unpack_from(f"{PROCESSES}d", self._page)
        return float(max(times))


def falls(world: World, level: Levels) -> dict[str, float]:
    """Memory falls by the stated rate from somewhere above the line. Times are from the line on."""
    begin = (level.line + 1000 + time.time_ns() % 997) * MIB
    world.available(begin)
    world.until(lambda s: s.available_kib == begin)
    engine = Engine(world)
    since = time.monotonic()
    while engine.lives():
        world.available(max(0, begin - int(RATE * MIB * (time.monotonic() - since))))
        time.sleep(0.0002)
    dead = time.monotonic()
    crossed = since + (begin / MIB - level.line) / RATE
    return {
        "last_run_ms": (engine.last() - crossed) * 1000,
        "dead_ms": (dead - crossed) * 1000,
        "least_mib": begin / MIB - RATE * (engine.last() - since),
    }


def jumps(world: World, level: Levels) -> dict[str, float]:
    """Memory is far above the line, and then at once below: what no rate allows."""
    world.available(64 * 1024 * MIB)
    world.until(lambda s: s.available_kib == 64 * 1024 * MIB)
    engine = Engine(world)
    time.sleep(time.time_ns() // 1000 % 250 / 1000)
    world.available((level.line - 1) * MIB)
    crossed = time.monotonic()
    while engine.lives():
        time.sleep(0.0002)
    return {"last_run_ms": (engine.last() - crossed) * 1000, "dead_ms": (time.monotonic() - crossed) * 1000}


def summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Median, 99th percentile, largest and smallest of each figure."""
    found = {}
    for name in runs[0]:
        values = sorted(run[name] for run in runs)
        found[name] = {
            "median": round(statistics.median(values), 2),
            "p99": round(values[int(0.99 * (len(values) - 1))], 2),
            "max": round(values[-1], 2),
            "min": round(values[0], 2),
        }
    return found


def cost(world: World, available_mib: int, steady: bool, seconds: float = 60.0) -> dict[str, float]:
    """CPU time of the guard, from the scheduler's count in ns."""
    world.available(available_mib * MIB)
    world.until(lambda s: s.available_kib == available_mib * MIB)
    assert world.guard is not None
    holder = world.hold(flags.ENGINE, *([flags.STEADY] if steady else []))
    begin = world.until(lambda s: s.engine and s.phase == ("steady" if steady else "startup"))
    before, since = _ran_s(world.guard.pid), time.monotonic()
    time.sleep(seconds)
    ran, passed = _ran_s(world.guard.pid) - before, time.monotonic() - since
    samples = world.state().seq - begin.seq
    holder.kill()
    holder.wait()
    return {
        "samples_per_s": round(samples / passed, 2),
        "cpu_percent": round(100 * ran / passed, 4),
        "us_per_sample": round(1e6 * ran / max(1, samples), 1),
    }


def _ran_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def cgroup() -> Iterator[Path]:
    """A cgroup of version 2, where there is one, below another: as the engine's is below its supervisor's."""
    root = min(cgroups.detect().hierarchies, key=lambda each: each.options).path
    unit = root / f"sparkserve-bench-{os.getpid()}"
    (unit / "engine").mkdir(parents=True)
    try:
        yield unit / "engine"
    finally:
        deadline = time.monotonic() + 5
        while unit.exists():
            try:
                (unit / "engine").rmdir()
                unit.rmdir()
            except OSError:
                assert time.monotonic() < deadline, unit
                time.sleep(0.05)


def measure(world: World, runs: int, seconds: float) -> dict[str, Any]:
    """Everything."""
    found: dict[str, Any] = {"load_before": os.getloadavg()}
    world.start(STARTUP, STEADY)
    found["lacks"] = world.until(lambda s: s.seq).lacks
    found["cost"] = {
        "steady, far from the line": cost(world, 64 * 1024, steady=True, seconds=seconds),
        "startup, far from the line": cost(world, 64 * 1024, steady=False, seconds=seconds),
        "at the line": cost(world, STARTUP.line, steady=False, seconds=seconds),
    }
    # Memory needs nobody to write it down: the one who does here must not wait for a core.
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    for name, one in (("falls", falls), ("jumps", jumps)):
        done = []
        for number in range(runs):
            done.append(one(world, STARTUP))
            world.until(lambda s: s.kill and s.kill.gone_ms is not None)
            print(f"{name} {number + 1}/{runs}: {done[-1]}", file=sys.stderr)
        found[name] = summary(done)
    found["load_after"] = os.getloadavg()
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--guard", required=True, help="the program")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each figure of CPU time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cgroup() as engine:
        world = World(options.guard, Path(folder), engine, kill_ms=KILL_MS)
        try:
            found = measure(world, options.runs, options.seconds)
        finally:
            world.end()
    found |= {
        "schema": "sparkserve.results.guard/1",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cpus": os.cpu_count(), "kernel": platform.release(), "arch": platform.machine()},
        "runs": options.runs,
        "levels": {"floor_mib": STARTUP.floor, "line_mib": STARTUP.line, "interval_ms": STARTUP.interval},
        "promise": {"rate_mib_s": RATE, "closest_ms": CLOSEST_MS, "kill_ms": KILL_MS},
        "engine": {"processes": PROCESSES, "held_mib_each": HELD_MIB},
    }
    options.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
