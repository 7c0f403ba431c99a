"""The memory guard over real cgroups of version 2 and 1, and what a supervisor does with it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guard_world import MIB, STARTUP, STEADY, Levels, World

from sparkserve import plan as plans
from sparkserve.guard import cgroup
from sparkserve.guard.engine import EngineGuard
from sparkserve.local import cgroups

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ("guard_fixtures",)

# Forks without rest: a guard that kills what it once read misses the newest.
FORKS = """
import os, time
print(1, flush=True)
while True:
    if os.fork() == 0:
        time.sleep(0.02)
        os._exit(0)
    time.sleep(0.001)
    while os.waitpid(-1, os.WNOHANG)[0]: pass
"""

TAKES = """
held = []
for _ in range(300):
    held.append(bytearray(b"x" * (16 << 20)))
"""


def hierarchies() -> list[Path]:
    """Where a cgroup of our own can be made, by version."""
    found = {each.options: each.path for each in cgroups.detect().hierarchies}
    return [found[options] for options in ("", "name=systemd") if options in found]


@pytest.fixture(params=hierarchies(), ids=lambda path: path.name)
def real(request: pytest.FixtureRequest, program: str, tmp_path: Path) -> Iterator[World]:
    unit = request.param / f"sparkserve-test-{os.getpid()}"
    engine = unit / "engine"
    engine.mkdir(parents=True)
    made = World(program, tmp_path, engine)
    yield made
    made.end()
    deadline = time.monotonic() + 5
    for folder in (engine, unit):
        while folder.is_dir() and time.monotonic() < deadline:
            with suppress(OSError):
                folder.rmdir()
            time.sleep(0.01)
    assert not unit.exists()


def processes(world: World) -> list[str]:
    return (world.cgroup / "cgroup.procs").read_text().split()


@pytest.mark.parametrize("readable", [True, False])
def test_nothing_of_the_engine_is_left(real: World, readable: bool) -> None:
    real.start(STARTUP._replace(interval=20))
    real.run_engine()
    argv = [real.program, "--enter", str(real.cgroup), sys.executable, "-c", FORKS]
    forks = subprocess.Popen(argv, stdout=subprocess.PIPE)
    real.processes.append(forks)
    assert forks.stdout is not None
    forks.stdout.readline()
    real.until(lambda s: s.reach)
    assert len(processes(real)) >= 4
    if readable:
        real.available((STARTUP.line - 1) * MIB)
    else:
        real.text("")
        assert real.ended()[0] == 1
    found = real.until(lambda s: s.kill and (not readable or s.kill.gone_ms is not None))
    assert real.dead(5)
    assert forks.wait(5) == -9
    # A process that has its SIGKILL stays listed until it next runs, on a busy machine for some ms.
    deadline = time.monotonic() + 5
    while processes(real) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes(real) == []
    assert found.kills == 1


def available() -> int:
    """This machine's MemAvailable in KiB."""
    text = Path("/proc/meminfo").read_text()
    return int(text.split("MemAvailable:")[1].split()[0])


def test_a_process_that_takes_real_memory_is_killed_before_the_floor(real: World) -> None:
    """As fast as one process can: 1 to 3 GiB/s. Others on this machine may take some too."""
    line = available() // MIB - 400
    level = Levels(line - 400, line, 250)
    real.meminfo, real.kill_ms = Path("/proc/meminfo"), 25
    real.start(level, level._replace(interval=2000))
    real.until(lambda s: s.reach)
    argv = [real.program, "--enter", str(real.cgroup), sys.executable, "-c", TAKES]
    taker = subprocess.Popen(argv)
    real.processes.append(taker)
    least = available()
    while taker.poll() is None:
        least = min(least, available())
    assert taker.returncode == -9
    assert least >= level.floor * MIB
    killed = real.until(lambda s: s.kill and s.kill.gone_ms is not None).kill
    assert killed is not None
    assert killed.available_kib is not None
    assert level.floor * MIB < killed.available_kib < level.line * MIB


def test_a_cgroup_that_was_made_anew_is_found_again(real: World) -> None:
    real.start(STARTUP._replace(interval=20))
    real.until(lambda s: s.reach)
    real.cgroup.rmdir()
    real.until(lambda s: not s.reach)
    real.cgroup.mkdir()
    real.until(lambda s: s.reach)
    real.run_engine()
    real.available((STARTUP.line - 1) * MIB)
    assert real.dead(5)


def test_a_program_that_cannot_enter_does_not_run(real: World) -> None:
    marker = real.folder / "ran"
    argv = [real.program, "--enter", str(real.cgroup / "no"), "/usr/bin/touch", str(marker)]
    assert subprocess.run(argv, capture_output=True).returncode == 126
    assert not marker.exists()
    assert subprocess.run([*argv[:2], str(real.cgroup), *argv[3:]]).returncode == 0
    assert marker.exists()


def supervisor(world: World, monkeypatch: pytest.MonkeyPatch) -> EngineGuard:
    level = {"floor_mib": STARTUP.floor, "line_mib": STARTUP.line, "interval_ms": 250}
    steady = {"floor_mib": STEADY.floor, "line_mib": STEADY.line, "interval_ms": 2000}
    value = {"startup": level, "steady": steady, "rate_mib_s": 2000, "closest_ms": 5, "kill_ms": 1000}
    monkeypatch.setattr(cgroup, "make", lambda: world.cgroup)
    return EngineGuard(plans.Guard.model_validate(value), world.program, world.folder)


def test_a_supervisor_starts_no_engine_without_a_guard(real: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = supervisor(real, monkeypatch)
    assert mine.hindrance() == "no memory guard watches (systemctl status sparkserve-guard)"
    real.start()
    real.word(5)
    assert mine.hindrance() is None
    real.available((STARTUP.line - 1) * MIB)
    real.until(lambda s: (s.available_kib or 0) < STARTUP.line * MIB)
    hindrance = mine.hindrance() or ""
    assert hindrance.startswith(f"MemAvailable is {STARTUP.line - 1} MiB: below {STARTUP.line} MiB the guard")
    assert real.guard is not None
    real.guard.kill()
    real.guard.wait()
    assert not mine.watches()
    assert mine.hindrance() == "no memory guard watches (systemctl status sparkserve-guard)"


def test_a_supervisor_tells_the_phase_and_says_why_its_engine_died(
    real: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = supervisor(real, monkeypatch)
    real.start(STARTUP._replace(interval=20), STEADY._replace(interval=20))
    real.until(lambda s: s.reach)
    mine.starts()
    real.run_engine()
    real.until(lambda s: s.engine and s.phase == "startup")
    mine.serves()
    real.until(lambda s: s.phase == "steady")
    assert asyncio.run(mine.verdict()) is None
    real.available((STEADY.line - 1) * MIB)
    assert real.dead(5)
    verdict = asyncio.run(mine.verdict())
    assert verdict is not None
    assert verdict.endswith(f"that keeps {STEADY.floor / 1024:.2f} GiB free (steady)")
    mine.ended()
    real.until(lambda s: not s.engine and s.phase == "startup")
    mine.starts()  # of the next engine nothing is known yet
    assert asyncio.run(mine.verdict()) is None


def test_the_engine_has_a_cgroup_below_its_supervisor(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("4:memory:/other\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n")
    unified = tmp_path / "sys/fs/cgroup/unified/system.slice/a.service"
    legacy = tmp_path / "sys/fs/cgroup/systemd/system.slice/a.service"
    with pytest.raises(FileNotFoundError):
        cgroup.make(own, tmp_path)
    for folder in (legacy, unified):
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").touch()
        assert cgroup.make(own, tmp_path) == folder / "engine"
    assert (unified / "engine").is_dir()
