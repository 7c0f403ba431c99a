"""What the guard promises, over many traces in its own clock: the same code decides as over a real memory."""

from __future__ import annotations

import json
import random
import subprocess
import time
from typing import Any, NamedTuple

import pytest
from guard_world import MIB, Levels

pytest_plugins = ("guard_fixtures",)


class Point(NamedTuple):
    ms: int
    kib: int
    phase: str


class Setting(NamedTuple):
    """Levels and times, and the rate in KiB a ms that docs/guard.md derives from them."""

    startup: Levels
    steady: Levels
    closest: int
    kill: int

    def level(self, phase: str) -> Levels:
        return self.steady if phase == "steady" else self.startup

    def rate(self, phase: str) -> float:
        level = self.level(phase)
        return (level.line - level.floor) * MIB / (self.closest + self.kill)


def simulate(program: str, setting: Setting, trace: list[Point]) -> dict[str, Any]:
    argv = [program, "--simulate", "--startup", str(setting.startup), "--steady", str(setting.steady)]
    argv += ["--closest", str(setting.closest), "--kill", str(setting.kill)]
    text = "".join(f"{each.ms} {each.kib} {each.phase}\n" for each in trace)
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def setting_of(draw: random.Random) -> Setting:
    closest = draw.randrange(1, 20)

    def level() -> Levels:
        floor = draw.randrange(256, 8000)
        return Levels(floor, floor + draw.randrange(20, 2000), draw.randrange(closest, 3000))

    return Setting(level(), level(), closest, draw.randrange(5, 200))


def trace_of(draw: random.Random, setting: Setting, phase: str) -> list[Point]:
    """Memory that falls by the stated rate at most, and rises as it likes; often just above the line."""
    level, rate = setting.level(phase), setting.rate(phase)
    found = [Point(0, level.line * MIB + draw.randrange(8 << 20), phase)]
    for _ in range(draw.randrange(1, 400)):
        last, span = found[-1], draw.choice([1, 2, 5, 30, 300, 3000])
        fall = draw.choice([0.0, draw.random(), 1.0, 1.0, -draw.random()])
        kib = last.kib - int(fall * rate * span)
        if kib < level.line * MIB and draw.random() < 0.7:
            kib = max(kib, min(last.kib, level.line * MIB + draw.randrange(2 * MIB)))
        found.append(Point(last.ms + span, max(0, kib), phase))
    end, fall_ms = found[-1], int(found[-1].kib / rate)
    return [*found, Point(end.ms + fall_ms, end.kib - int(fall_ms * rate), phase)] if fall_ms else found


@pytest.mark.parametrize("phase", ["startup", "steady"])
def test_no_trace_below_the_rate_reaches_the_floor(program: str, phase: str) -> None:
    seed = time.time_ns()
    draw = random.Random(seed)  # noqa: S311 - a test
    killed = 0
    for number in range(300):
        setting = setting_of(draw)
        found = simulate(program, setting, trace_of(draw, setting, phase))
        if found["killed"]:
            killed += 1
            assert found["phase"] == phase
            assert found["after_kib"] >= setting.level(phase).floor * MIB, (seed, number)
            assert found["available_kib"] < setting.level(phase).line * MIB, (seed, number)
    assert killed > 200


def test_what_is_never_below_the_line_is_never_killed(program: str) -> None:
    draw = random.Random()  # noqa: S311 - a test
    for _ in range(50):
        setting = setting_of(draw)
        line = setting.startup.line * MIB
        trace = [
            Point(ms, line + draw.choice([0, draw.randrange(9 << 20)]), "startup") for ms in range(0, 999, 3)
        ]
        found = simulate(program, setting, trace)
        assert found["killed"] is False
        # Nor is it looked at more often than it needs to be.
        assert found["samples"] <= 999 / setting.closest + 1


def test_a_faster_fall_can_reach_the_floor(program: str) -> None:
    """Such as from far away, ten times as fast: memory is gone between two samples."""
    setting = Setting(Levels(5120, 5360, 250), Levels(3072, 3312, 2000), 5, 25)
    begin = (3312 + 16000) * MIB
    fast = [Point(0, begin, "steady"), Point(200, 0, "steady"), Point(3000, 0, "steady")]
    assert simulate(program, setting, fast)["after_kib"] == 0


def test_the_phase_is_that_of_the_sample(program: str) -> None:
    setting = Setting(Levels(5120, 5360, 250), Levels(3072, 3312, 2000), 5, 25)
    between = 4000 * MIB
    for kib in (between, 64 << 20):
        found = simulate(program, setting, [Point(0, kib, "steady"), Point(9000, kib, "steady")])
        assert found == {"killed": False, "samples": looks(kib, setting)}
    trace = [Point(0, between, "steady"), Point(500, between, "startup"), Point(600, between, "startup")]
    found = simulate(program, setting, trace)
    assert (found["killed"], found["phase"]) == (True, "startup")


def looks(kib: int, setting: Setting) -> int:
    """How often 9 s are sampled at one value: room over rate, in whole ms."""
    pause = (kib - setting.steady.line * MIB) * 30 // (240 * MIB)
    return 9000 // min(2000, max(5, pause)) + 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 2\n",
        "1 2 later\n",
        "5 2 steady\n5 1 steady\n",
        "1 -2 steady\n",
        "-1 2 steady\n",
        "1 8589934592 steady\n",
        "0 9000000 steady\n99999999999999999 1 steady\n",
    ],
)
def test_a_trace_that_is_none_is_refused(program: str, text: str) -> None:
    argv = [program, "--simulate", "--startup", "5,6,9", "--steady", "3,4,9", "--closest", "5", "--kill", "9"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    assert (done.returncode, "MS KIB startup|steady" in done.stderr) == (2, True)
