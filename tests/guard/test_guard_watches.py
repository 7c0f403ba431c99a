"""What the real guard tells others, what it needs, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guard_world import CLOSEST_MS, MIB, STARTUP, STEADY, Levels

from sparkserve.errors import SparkserveError
from sparkserve.guard import flags, state

if TYPE_CHECKING:
    from guard_world import World

pytest_plugins = ("guard_fixtures",)

LEVELS = ("--startup", "1,2,9", "--steady", "1,2,9")


def test_it_is_ready_after_a_good_sample_and_says_that_it_lives(world: World) -> None:
    world.start()
    assert world.word(5) == "READY=1"
    assert world.word(5) == "WATCHDOG=1"
    assert world.word(5) == "WATCHDOG=1"


def test_it_is_not_ready_without_one(world: World) -> None:
    world.text("MemTotal: 1 kB\n")
    world.start()
    assert world.ended()[0] == 1
    assert world.word(0.2) is None
    mine = flags.Flags(world.flags)
    assert not mine.seen(flags.GUARD)
    mine.close()


def test_its_lock_says_that_it_watches_and_goes_with_it(world: World) -> None:
    world.start()
    world.word(5)
    mine = flags.Flags(world.flags)
    assert mine.seen(flags.GUARD)
    assert world.guard is not None
    world.guard.kill()
    world.guard.wait()
    assert not mine.seen(flags.GUARD)
    mine.close()


def test_a_second_one_is_refused_and_does_nothing(world: World) -> None:
    world.start()
    world.run_engine()
    world.hold(flags.ENGINE)
    assert world.guard is not None
    first = world.guard.pid
    world.until(lambda s: s.engine)
    # To the second one no memory can be read, for which a guard kills.
    world.start(STARTUP, STEADY, "--meminfo", str(world.folder / "none"))
    code, said = world.ended()
    assert (code, "Another guard watches" in said) == (3, True)
    assert world.alive()
    assert world.state().pid == first


def test_the_phase_is_what_the_supervisor_holds(world: World) -> None:
    short = STARTUP._replace(interval=20), STEADY._replace(interval=20)
    world.start(*short)
    assert world.until(lambda s: True).engine is False
    engine = world.hold(flags.ENGINE)
    found = world.until(lambda s: s.engine)
    assert (found.phase, found.floor_mib) == ("startup", STARTUP.floor)
    steady = world.hold(flags.STEADY)
    found = world.until(lambda s: s.phase == "steady")
    assert (found.floor_mib, found.line_mib) == (STEADY.floor, STEADY.line)
    # A word about an engine that is not there counts for nothing.
    engine.kill()
    engine.wait()
    assert world.until(lambda s: s.phase == "startup").engine is False
    steady.kill()


def test_the_least_memory_is_kept_for_the_node_and_for_each_engine(world: World) -> None:
    short = STARTUP._replace(interval=20), STEADY._replace(interval=20)
    world.start(*short)
    world.available(20000 * MIB)
    world.until(lambda s: s.available_kib == 20000 * MIB)
    world.available(22000 * MIB)
    world.until(lambda s: s.available_kib == 22000 * MIB)
    first = world.hold(flags.ENGINE)
    found = world.until(lambda s: s.engine)
    assert (found.low_water_kib, found.low_water_engine_kib) == (20000 * MIB, 22000 * MIB)
    first.kill()
    first.wait()
    world.until(lambda s: not s.engine)
    world.available(25000 * MIB)
    world.until(lambda s: s.available_kib == 25000 * MIB)
    world.hold(flags.ENGINE)
    assert world.until(lambda s: s.engine).low_water_engine_kib == 25000 * MIB
    # Another guard of the same node goes on from there.
    assert world.guard is not None
    world.guard.kill()
    world.guard.wait()
    world.start(*short)
    pid = world.guard.pid
    assert world.until(lambda s: s.pid == pid).low_water_kib == 20000 * MIB


def test_a_turn_takes_no_memory(world: World) -> None:
    """Minor faults count every page that a process touches for the first time."""
    turns = Levels(5120, 6000, 1), Levels(3072, 3952, 1)
    world.start(*turns, "--closest", "1")
    world.hold(flags.ENGINE)
    world.run_engine()
    begin = world.until(lambda s: s.seq > 200 and s.engine).seq
    assert world.guard is not None
    before = _faults(world.guard.pid)
    found = world.until(lambda s: s.seq > begin + 1000, 30)
    assert _faults(world.guard.pid) == before
    locked = int(_status(world.guard.pid)["VmLck"].split()[0])
    assert locked > 0 or "locked memory" in found.lacks


def test_a_reader_never_sees_half_a_state(world: World) -> None:
    world.start(Levels(5120, 6000, 1), Levels(3072, 3952, 1), "--closest", "1")
    world.until(lambda s: s.seq > 5)
    deadline = time.monotonic() + 2
    last = 0
    while time.monotonic() < deadline:
        seen = world.state()
        assert seen.seq == seen.end >= last
        last = seen.seq
    assert last > 200


def test_a_state_that_nobody_renews_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkserveError, match=r"GUARD\.STATE.*No such file"):
        state.read(tmp_path / "none")
    assert state.look(tmp_path / "none") is None
    (tmp_path / "bad").write_text("{}")
    with pytest.raises(SparkserveError, match=r"GUARD\.STATE"):
        state.read(tmp_path / "bad")


def test_without_room_for_its_state_it_guards_and_says_so_once(world: World) -> None:
    world.state_file = Path("/dev/full")
    world.start(STARTUP._replace(interval=CLOSEST_MS))
    assert world.word(5) == "READY=1"
    world.run_engine()
    world.hold(flags.ENGINE)
    assert world.word(5) == "WATCHDOG=1"
    world.available(STARTUP.floor * MIB)
    assert world.dead(10)
    assert world.guard is not None
    world.guard.kill()
    assert world.ended()[1].count("The state file cannot be written.") == 1


def test_an_old_sample_is_an_error(world: World) -> None:
    world.start()
    assert world.until(lambda s: s.seq == 1).age_s < 5
    assert world.guard is not None
    world.guard.kill()
    old = world.state_file.read_text().split('"monotonic_ms":')
    world.state_file.write_text(f'{old[0]}"monotonic_ms":0{old[1][len(old[1].split(",")[0]) :]}')
    with pytest.raises(SparkserveError, match=r"a sample of the last 10 s; found one \d+ s old"):
        world.state()


def test_two_builds_are_the_same_bytes() -> None:
    places = [Path(folder) / "guard" for folder in os.environ["PATH"].split(":")]
    built = [place.read_bytes() for place in places if place.is_file()]
    if len(built) < 2:
        pytest.skip("only checks/guard.nix builds it twice")
    assert built[0] == built[1]
    assert b"/nix/store" not in built[0]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--startup", "5120,5120,250"], "--startup: expected a line above the floor; found 5120,5120,250"),
        (["--startup", "5120,5360"], "--startup: expected FLOOR,LINE,INTERVAL"),
        (["--startup", "5120,5360,0"], "--startup: expected a number from 1 to 1048576"),
        (["--startup", "5120,5360,9x"], "--startup: expected FLOOR,LINE,INTERVAL"),
        (["--startup", "1048577,1048578,9"], "--startup: expected a number from 1 to 1048576"),
        (["--steady", "1,2,3"], "--startup: expected FLOOR,LINE,INTERVAL; found nothing"),
        ([*LEVELS], "--closest: expected MS; found nothing"),
        ([*LEVELS, "--closest", "5"], "--kill: expected MS; found nothing"),
        ([*LEVELS, "--closest", "10", "--kill", "9"], "--closest: expected at most the intervals"),
        ([*LEVELS, "--closest", "5", "--kill", "9"], "expected --state, --flags and --cgroup"),
        (["--startup", "1,2,9", "now"], "expected options only; found now"),
        (["--enter", "/nowhere", "/bin/true"], "/nowhere/cgroup.procs: No such file or directory"),
    ],
)
def test_what_it_does_not_understand_it_refuses(program: str, argv: list[str], said: str) -> None:
    done = subprocess.run([program, *argv], capture_output=True, text=True)
    assert done.returncode == (126 if "--enter" in argv else 2)
    assert said in done.stderr


def _faults(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
