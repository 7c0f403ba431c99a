"""nvidia-smi is asked seldom, may hang, and does not know everything of a Spark."""

from __future__ import annotations

import threading

import pytest

from sparkserve.metrics import gpu
from sparkserve.metrics.gpu import Gpu

SPARK = "96, 20.31, 858, 61\n"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_is_asked_every_ten_seconds_at_most() -> None:
    clock, asked = Clock(), []
    watch = Gpu(lambda: asked.append(clock.now) or SPARK, clock)  # type: ignore[func-returns-value]
    for second in range(60):
        clock.now = 100.0 + second
        assert watch.samples()
    assert asked == [100, 110, 120, 130, 140, 150]


def test_what_a_spark_says() -> None:
    found = {sample.name: sample.value for sample in Gpu(lambda: SPARK).samples()}
    assert found == {
        "sparkserve_gpu_use_ratio": pytest.approx(0.96),
        "sparkserve_gpu_power_watts": 20.31,
        "sparkserve_gpu_clock_hertz": 858e6,
        "sparkserve_gpu_temperature_celsius": 61,
    }


@pytest.mark.parametrize(
    ("printed", "left"),
    [
        ("[N/A], [N/A], [N/A], [N/A]\n", 0),  # issues I02
        ("96, [Not Supported], 858, [Unknown Error]\n", 2),
        ("", 0),
        ("No devices were found\n", 0),
        ("96, 20.31\n", 0),
        (SPARK + SPARK, 0),  # two GPUs: no Spark
        ("nan, inf, 858, 61\n", 2),
    ],
)
def test_what_it_does_not_know_is_left_out(printed: str, left: int) -> None:
    assert len(Gpu(lambda: printed).samples()) == left


def test_one_that_hangs_stops_nobody_and_an_old_answer_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "PATIENCE_S", 0.01)
    clock, hangs, asked = Clock(), threading.Event(), []
    hangs.set()

    def ask() -> str:
        asked.append(clock.now)
        hangs.wait()
        return SPARK

    watch = Gpu(ask, clock)
    assert len(watch.samples()) == 4
    hangs.clear()
    for clock.now in (110.0, 120.0, 129.0):
        assert len(watch.samples()) == 4
    clock.now = 131.0
    assert watch.samples() == []
    assert asked == [100, 110]  # a second one would hang beside the first
    hangs.set()


def test_no_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert Gpu().samples() == []
