"""When the real guard kills, and when it does not; its memory is ours, the processes are real."""

from __future__ import annotations

import random
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from guard_world import CLOSEST_MS, KILL_MS, MIB, STARTUP, STEADY, Levels

from sparkserve.guard import flags

if TYPE_CHECKING:
    from guard_world import World

pytest_plugins = ("guard_fixtures",)

# The rate of a level, in KiB a second: what docs/guard.md promises.
RATE = (STEADY.line - STEADY.floor) * MIB * 1000 / (CLOSEST_MS + KILL_MS)


def fall(world: World, begin: int, rate: float, seconds: float = 30.0) -> int:
    """Let memory fall from `begin` KiB while the engine lives; the least that there was."""
    since = time.monotonic()
    least = begin
    while world.alive():
        least = max(0, begin - round(rate * (time.monotonic() - since)))
        world.available(least)
        assert time.monotonic() - since < seconds
        time.sleep(0.0005)
    return least


@pytest.mark.parametrize("steady", [False, True])
def test_below_the_stated_rate_the_floor_is_never_reached(world: World, steady: bool) -> None:
    seed = time.time_ns()
    level = STEADY if steady else STARTUP
    world.start()
    world.run_engine()
    world.hold(*([flags.ENGINE, flags.STEADY] if steady else [flags.ENGINE]))
    world.until(lambda s: s.engine and s.phase == ("steady" if steady else "startup"))
    chosen = random.Random(seed)  # noqa: S311 - a test
    begin = (level.line + chosen.randrange(1, 4000)) * MIB
    # The promise is about memory that falls, not about a jump.
    world.available(begin)
    world.until(lambda s: s.available_kib == begin)
    least = fall(world, begin, RATE * chosen.uniform(0.3, 1.0))
    assert least >= level.floor * MIB, seed
    assert least < level.line * MIB, seed
    killed = world.until(lambda s: s.kills).kill
    assert killed is not None
    assert killed.available_kib is not None
    assert level.floor * MIB <= killed.available_kib < level.line * MIB
    assert killed.words().endswith(f"({'steady' if steady else 'startup'})")
    assert "The engine was killed: MemAvailable " in world.said()
    assert world.dead(5)
    killed = world.until(lambda s: s.kill and s.kill.gone_ms is not None).kill
    assert world.guard is not None
    world.guard.kill()
    world.guard.wait()
    world.start()
    pid = world.guard.pid
    assert world.until(lambda s: s.pid == pid).kill == killed


def test_what_stays_above_the_line_is_left_alone(world: World) -> None:
    world.start(STARTUP._replace(interval=CLOSEST_MS))
    world.run_engine()
    world.hold(flags.ENGINE)
    world.until(lambda s: s.engine)
    chosen = random.Random()  # noqa: S311 - a test
    least = STARTUP.line * MIB
    for _ in range(100):
        world.available(least + chosen.randrange(5000) * MIB)
        time.sleep(0.005)
    world.available(least)
    found = world.until(lambda s: s.available_kib == least)
    assert (found.low_water_engine_kib, found.low_water_kib, found.kills) == (least, least, 0)
    assert world.alive()
    world.available(least - 1)
    assert world.dead(5)


def test_the_interval_is_long_only_far_from_the_line(world: World) -> None:
    world.start(STARTUP._replace(interval=2000))
    first = world.until(lambda s: s.seq == 1)
    time.sleep(0.5)
    assert world.state().seq == first.seq
    world.available(STARTUP.line * MIB)
    near = world.until(lambda s: s.seq == 3).seq
    time.sleep(0.5)
    assert world.state().seq > near + 20


@pytest.mark.parametrize(
    "text",
    ["", "MemFree: 9 kB\n", "MemAvailable: 99999999\n", "MemAvailable: -9 kB\n", "MemAvailable: 9z kB\n",
     "MemAvailable: 9999999999999999999 kB\n", "MemAvailable:  kB\n", "xMemAvailable: 99999999 kB\n"],
)  # fmt: skip
def test_memory_that_cannot_be_read_kills_and_ends_the_guard(world: World, text: str) -> None:
    world.start()
    world.run_engine()
    world.hold(flags.ENGINE)
    world.until(lambda s: s.engine)
    world.text(text)
    assert world.dead(5)
    code, said = world.ended()
    assert code == 1
    assert "MemAvailable cannot be read" in said
    killed = world.until(lambda s: s.kills).kill
    assert killed is not None
    assert killed.words() == "the memory guard killed its engine: MemAvailable cannot be read"
    # The next one ends too, and forgets nothing.
    world.start()
    assert world.guard is not None
    assert world.ended()[0] == 1
    found = world.state()
    assert (found.pid, found.kills) == (world.guard.pid, 1)
    assert found.kill is not None
    assert found.kill.words() == killed.words()


def test_an_engine_that_it_cannot_kill_ends_the_guard(world: World) -> None:
    """Its supervisor ends it then (tests/unit/test_group_guard.py)."""
    world.start()
    world.hold(flags.ENGINE)
    assert world.until(lambda s: s.engine).reach is False
    world.available(STARTUP.line * MIB - 1)
    code, said = world.ended()
    assert (code, "The engine's cgroup is not there" in said) == (1, True)


def test_without_an_engine_nothing_is_counted_and_the_next_one_is_killed(world: World) -> None:
    world.available(STARTUP.line * MIB - 1)
    world.start()
    found = world.until(lambda s: s.seq > 20)
    assert (found.kills, found.reach, found.kill) == (0, False, None)
    world.run_engine()
    assert world.dead(5)
    found = world.until(lambda s: s.kill and s.kill.gone_ms is not None)
    assert (found.kills, found.reach) == (1, True)


def test_the_floor_of_the_start_counts_again_when_the_supervisor_is_gone(world: World) -> None:
    world.available((STARTUP.line + STEADY.line) * MIB // 2)
    world.start()
    supervisor = world.hold(flags.ENGINE, flags.STEADY)
    world.until(lambda s: s.phase == "steady" and s.engine)
    world.run_engine()
    time.sleep(0.3)
    assert world.alive()
    supervisor.kill()
    supervisor.wait()
    assert world.dead(5)
    assert world.until(lambda s: s.kills).phase == "startup"


def test_a_level_is_a_pair_of_numbers_that_makes_a_rate(program: str) -> None:
    chosen = random.Random()  # noqa: S311 - a test
    floor, above = chosen.randrange(256, 9000), chosen.randrange(100, 3000)
    closest, kill = chosen.randrange(1, 20), chosen.randrange(5, 200)
    level = str(Levels(floor, floor + above, 250))
    argv = [program, "--explain", "--startup", level, "--steady", level]
    done = subprocess.run(
        [*argv, "--closest", str(closest), "--kill", str(kill)], capture_output=True, text=True, check=True
    )
    # Room over time, in MiB and ms.
    assert f"falls by {above * 1000 // (closest + kill)} MiB/s at most" in done.stdout
    assert done.stdout.count(f"stays above {floor} MiB") == 2
