"""Memory that is taken and given back in every way we could think of, never faster than the stated rate.

Written by somebody who did not write the guard. The one who takes is a process of the engine: it stops when
it is killed, so the least that it wrote is what the node was left with.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from guard_world import CLOSEST_MS, KILL_MS, MIB, STARTUP, STEADY

from sparkserve.guard import flags

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard_world import Levels, World

pytest_plugins = ("guard_fixtures",)

# Starts at argv[2] KiB and follows the trace: seconds, and KiB that are taken in each of them.
TAKER = """
import json, os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY)
level = float(sys.argv[2])
print(1, flush=True)
def say():
    text = f"MemTotal: 127926272 kB\\nMemAvailable: {int(level):12d} kB\\n"
    os.pwrite(file, text.encode().ljust(256, b"\\n"), 0)
sys.stdin.readline()
for seconds, rate in json.loads(sys.argv[3]):
    # A turn that the scheduler takes from us is lost, not made up for: that would be a jump above the rate.
    end = time.monotonic() + seconds
    last = time.monotonic()
    while (now := time.monotonic()) < end:
        level -= rate * min(now - last, 0.001)
        last = now
        say()
print(2, flush=True)
time.sleep(600)
"""


class Trace(NamedTuple):
    """`begin` in MiB above the line; segments: seconds, share of the stated rate (below 0: given back)."""

    begin: float
    segments: list[tuple[float, float]]


Chosen = random.Random


def plunge(chosen: Chosen) -> Trace:
    """All at once, from anywhere."""
    return Trace(chosen.uniform(1, 6000), [(8, chosen.uniform(0.9, 0.999))])


def calm_then_plunge(chosen: Chosen) -> Trace:
    """So long without a change that the guard samples at its slowest, then as fast as is allowed."""
    return Trace(chosen.uniform(3000, 20000), [(chosen.uniform(0.5, 2), 0), (15, 0.999)])


def staircase(chosen: Chosen) -> Trace:
    """A layer, a pause, a layer: the pauses are of the length of a sample's."""
    steps = [
        pair
        for _ in range(400)
        for pair in ((chosen.uniform(0.002, 0.1), 0.999), (chosen.uniform(0.001, 0.3), 0))
    ]
    return Trace(chosen.uniform(100, 2000), steps)


def sawtooth(chosen: Chosen) -> Trace:
    """A cache that is filled and dropped, a little fuller each time."""
    teeth = [pair for _ in range(300) for pair in ((0.04, 0.999), (0.03, -1.0))]
    return Trace(chosen.uniform(50, 500), teeth)


def hover(chosen: Chosen) -> Trace:
    """Up and down just above the line, then through it."""
    waves = [pair for _ in range(60) for pair in ((0.005, 0.5), (0.005, -0.5))]
    return Trace(chosen.uniform(6, 30), [*waves, (5, 0.999)])


def leak(chosen: Chosen) -> Trace:
    """So slow that nobody would see it."""
    return Trace(chosen.uniform(2, 20), [(30, chosen.uniform(0.01, 0.05))])


def give_back_and_plunge(chosen: Chosen) -> Trace:
    """A large buffer comes free, so that the guard lengthens its step, and is taken again at once."""
    return Trace(chosen.uniform(50, 200), [(0.2, 0.1), (0.3, -chosen.uniform(5, 40)), (60, 0.999)])


def pulses(chosen: Chosen) -> Trace:
    """Segments of any length and any rate."""
    any_rate = [(chosen.uniform(0.001, 0.2), chosen.uniform(-0.3, 0.999)) for _ in range(600)]
    return Trace(chosen.uniform(10, 1500), any_rate)


SHAPES = (plunge, calm_then_plunge, staircase, sawtooth, hover, leak, give_back_and_plunge, pulses)


def follow(world: World, level: Levels, trace: Trace) -> tuple[float, bool]:
    """Let the engine follow the trace: the least MiB that was left, and whether the engine was killed."""
    rate = (level.line - level.floor) * MIB * 1000 / (CLOSEST_MS + KILL_MS)
    begin = (level.line + trace.begin) * MIB
    world.available(int(begin))
    segments = json.dumps([(seconds, share * rate) for seconds, share in trace.segments])
    argv = [sys.executable, "-c", TAKER, str(world.meminfo), str(begin), segments]
    taker = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    world.engine.append(taker)
    world.processes.append(taker)
    assert taker.stdin is not None
    assert taker.stdout is not None
    taker.stdout.readline()
    world.cgroup.mkdir(exist_ok=True)
    (world.cgroup / "cgroup.procs").write_text("".join(f"{each.pid}\n" for each in world.engine))
    world.until(lambda s: s.available_kib == int(begin) and s.engine)
    taker.stdin.write(b"\n")
    taker.stdin.flush()
    killed = taker.stdout.readline() == b""
    least = float(world.meminfo.read_text().split()[4]) / MIB
    return least, killed


@pytest.mark.parametrize("steady", [False, True], ids=["startup", "steady"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_floor_holds(world: World, shape: Callable[[Chosen], Trace], steady: bool) -> None:
    seed = time.time_ns()
    level = STEADY if steady else STARTUP
    world.start()
    world.run_engine(2)
    world.hold(*([flags.ENGINE, flags.STEADY] if steady else [flags.ENGINE]))
    least, killed = follow(world, level, shape(random.Random(seed)))  # noqa: S311 - a test
    assert killed, f"not killed; seed {seed}"
    assert least >= level.floor, seed
    assert least < level.line, seed
    assert world.dead(5), seed


def test_a_phase_that_changes_in_the_fall_counts_at_once(world: World) -> None:
    """An engine starts where one that serves may be: the higher line counts as soon as the guard looks."""
    world.start()
    world.run_engine(1)
    serving = world.hold(flags.ENGINE, flags.STEADY)
    world.available((STARTUP.line - 500) * MIB)
    world.until(lambda s: s.phase == "steady" and s.available_kib == (STARTUP.line - 500) * MIB)
    assert world.alive()
    serving.kill()
    world.hold(flags.ENGINE)
    assert world.dead(STEADY.interval / 1000 + 2)


def test_the_trace_is_what_it_says(world: World) -> None:
    """Without a guard the same engine goes through the floor: the traces can fail."""
    world.start()
    world.run_engine(1)
    world.hold(flags.ENGINE)
    world.until(lambda s: s.engine)
    assert world.guard is not None
    world.guard.send_signal(19)  # SIGSTOP
    begin = STARTUP.line * MIB
    argv = [sys.executable, "-c", TAKER, str(world.meminfo), str(begin), json.dumps([(3, 2000 * MIB)])]
    taker = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    world.processes.append(taker)
    assert taker.stdin is not None
    taker.stdin.write(b"\n")
    taker.stdin.flush()
    deadline = time.monotonic() + 20
    while float(world.meminfo.read_text().split()[4]) > STARTUP.floor * MIB:
        assert time.monotonic() < deadline
        time.sleep(0.05)
