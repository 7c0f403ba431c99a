"""The watch over nodes: it stops a run before the guard would kill, and says what slows a node down."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkserve import commands
from sparkserve.bench import node, watch
from sparkserve.bench.node import Facts, Gpu
from sparkserve.errors import SparkserveError
from sparkserve.plan import load
from sparkserve.runner import Recorded, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 20
GOLDEN = Path(__file__).parents[1] / "golden"


def facts(
    available_gib: float,
    *,
    total_gib: int = 120,
    throttled: int = 0,
    stolen: int = 0,
    ticks: int = 1000,
    gpu: Gpu | None = None,
) -> Facts:
    return Facts(
        available_kib=int(available_gib * GIB),
        total_kib=total_gib * GIB,
        swap_kib=0,
        throttled=throttled,
        stolen=stolen,
        ticks=ticks,
        gpu=gpu,
    )


class Told:
    """Nodes that say what a test tells them to, then wait."""

    def __init__(self, **nodes: list[Facts]) -> None:
        self.names = tuple(nodes)
        self._nodes = nodes
        self._ended = threading.Event()
        self.said = threading.Event()

    def follow(self, name: str) -> Iterator[Facts]:
        yield from self._nodes[name]
        self.said.set()
        self._ended.wait()

    def close(self) -> None:
        self._ended.set()


async def endless() -> None:
    await asyncio.sleep(60)


def test_the_run_stops_a_gib_above_the_guards_line() -> None:
    plan = load(GOLDEN / "tp3-triangle" / "spark-0.json")
    assert plan.guard is not None
    line = plan.guard.steady.line_mib / 1024
    quiet, low = facts(line + 1.01), facts(line + 0.99)
    with (
        watch.Watch(Told(a=[quiet] * 3, b=[quiet, low]), plan) as watching,
        pytest.raises(SparkserveError) as raised,
    ):
        asyncio.run(watching.guarded(endless()))
    assert raised.value.id == "BENCH.MEMORY"
    assert raised.value.where == "b"
    assert watching.lowest["a"] == pytest.approx(line + 1.01, abs=0.01)
    assert watching.lowest["b"] == pytest.approx(line + 0.99, abs=0.01)


def test_a_node_that_is_no_longer_seen_ends_the_run() -> None:
    source = Told(a=[facts(8)])
    with watch.Watch(source) as watching, pytest.raises(SparkserveError) as raised:
        source.said.wait(10)
        source.close()
        asyncio.run(watching.guarded(endless()))
    assert (raised.value.id, raised.value.where) == ("NODE.UNREACHABLE", "a")


def test_a_small_machine_has_a_share_for_its_margin() -> None:
    """Of 8 GiB a 16th, half a GiB: a GiB would stop runs that nothing threatens."""
    for available, stops in ((0.51, False), (0.49, True)):
        source = Told(a=[facts(available, total_gib=8)])
        with watch.Watch(source) as watching:
            source.said.wait(10)

            async def short() -> str:
                await asyncio.sleep(0)
                return "done"

            if stops:
                with pytest.raises(SparkserveError, match=r"BENCH\.MEMORY"):
                    asyncio.run(watching.guarded(short()))
            else:
                assert asyncio.run(watching.guarded(short())) == "done"


def test_a_node_that_is_not_seen_stops_the_run() -> None:
    lines = "".join(facts(50).model_dump_json() + "\n" for _ in range(3))
    runner = Recorded({commands.watch().line(): Result(0, lines + '{"available')})
    with (
        watch.Watch(watch.There(runner, ("spark-1",))) as watching,
        pytest.raises(SparkserveError) as raised,
    ):
        asyncio.run(watching.guarded(endless()))
    assert raised.value.where == "spark-1"
    assert watching.lowest == {"spark-1": 50.0}


def test_what_is_asked_of_nodes_only_reads() -> None:
    assert commands.watch().safety is commands.Safety.READS_HOSTS
    assert commands.watch().line() == "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank watch"


BUSY = Gpu(utilization=96, power_w=62, clock_mhz=2400, slowed=())


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (facts(9, throttled=3), "throttled 3 times"),
        (facts(9, stolen=60, ticks=2000), "6%"),
        (facts(9, gpu=BUSY.model_copy(update={"clock_mhz": 858.0, "power_w": 30.0})), "858 MHz"),
        (facts(9, gpu=BUSY.model_copy(update={"power_w": 20.0})), "20 W"),
        (facts(9, gpu=BUSY.model_copy(update={"slowed": ("hw_thermal_slowdown",)})), "hw_thermal_slowdown"),
    ],
)
def test_a_slow_node_is_told(now: Facts, word: str) -> None:
    """858 MHz at 96 % is issue F01; 96 %, 20 W is I06."""
    assert word in str(watch.why_slow(facts(9), now))


@pytest.mark.parametrize(
    "now",
    [
        facts(9),
        facts(9, stolen=40, ticks=2000),
        facts(9, gpu=BUSY),
        facts(9, gpu=Gpu(utilization=3, power_w=11, clock_mhz=208, slowed=())),
        facts(9, gpu=Gpu(utilization=None, power_w=None, clock_mhz=None, slowed=())),
    ],
)
def test_a_node_that_is_itself_is_not(now: Facts) -> None:
    assert watch.why_slow(facts(9), now) is None


def test_slow_is_asked_since_the_last_time() -> None:
    source = Told(a=[facts(9), facts(9, throttled=2)])
    with watch.Watch(source) as watching:
        source.said.wait(10)
        assert watching.slow() is None  # nothing to compare with
        watching._see("a", facts(9, throttled=5))
        assert watching.slow() == "a: its cores were throttled 3 times"
        assert watching.slow() is None


def test_swap_that_grows_is_noted() -> None:
    looks = [facts(9).model_copy(update={"swap_kib": kib}) for kib in (2 * GIB, 3 * GIB, 2 * GIB)]
    watching = watch.Watch(Told())
    for look in looks:
        watching._see("a", look)
        watching._see("b", facts(9).model_copy(update={"swap_kib": 5 * GIB}))
    assert watching.notes() == ["a: its swap grew while it was measured"]


def test_a_node_says_what_proc_says(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    (proc / "meminfo").write_text(
        "MemTotal:       8000000 kB\nMemFree:  1 kB\nMemAvailable:   5000000 kB\n"
        "SwapTotal:      2000000 kB\nSwapFree:       1500000 kB\nHugePages_Total:       0\n"
    )
    (proc / "stat").write_text("cpu  10 20 30 400 5 6 7 80 900 1000\ncpu0 1 2 3 4 5 6 7 8 9 10\nbtime 1\n")
    for core, count in (("cpu0", 4), ("cpu1", 5)):
        folder = sys / "devices/system/cpu" / core / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{count}\n")
    found = node.look(proc, sys)
    assert (found.available_kib, found.total_kib, found.swap_kib) == (5_000_000, 8_000_000, 500_000)
    assert found.throttled == 9
    assert (found.stolen, found.ticks) == (80, 558)  # guests (900, 1000) are in user and nice


def test_this_machine_says_something() -> None:
    found = node.look()
    assert 0 < found.available_kib < found.total_kib
    assert found.ticks > 0


def test_a_node_is_followed_until_stdin_ends() -> None:
    """As a runner does it: what it starts must not stay when it goes."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkserve.cli.main", "rank", "watch"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=60,
    )
    (line,) = done.stdout.splitlines()
    assert Facts.model_validate_json(line).total_kib > 0


def test_the_gpu_of_unified_memory() -> None:
    """Issue I02: [N/A] is an answer."""
    found = node.parse_gpu("96, 61.25, [N/A], Active, Not Active, Not Active\n")
    assert found == Gpu(utilization=96, power_w=61.25, clock_mhz=None, slowed=("hw_thermal_slowdown",))
    assert node.parse_gpu("No devices were found\n") is None


def test_the_gpu_is_asked_every_ten_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue F07: each 2 s cost a step 0.6 ms."""
    clock = [0.0]
    asked = []
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(node, "ask_gpu", lambda: asked.append(clock[0]))

    def ended(seconds: float) -> bool:
        clock[0] += seconds
        return clock[0] > 60

    looks = len(list(node.follow(ended)))
    assert looks >= 60
    assert all(after - before >= 10 for before, after in itertools.pairwise(asked))
    assert len(asked) > 3
