"""Bench results drawn at random, as files of sparkserve.bench/1."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparkserve.bench.results import Boot, Point, Result, Sample
from sparkserve.gates.evidence import Subject

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.stats.stopping import Rule

NAMES = tuple(f"{case}-c{streams}" for case in ("prose", "code") for streams in (1, 2, 4, 8))


def normal(rng: np.random.Generator) -> float:
    """An effect of a boot, with sd 1."""
    return float(rng.normal())


def skewed(rng: np.random.Generator) -> float:
    """One that is mostly a little less than usual, and at times much more: an exponential, skewness 2."""
    return float(rng.exponential() - 1)


@dataclass(frozen=True)
class Shape:
    """What a simulated machine is like. Spreads are standard deviations of logarithms.

    `common` is the share of the variance between boots that all points of a boot have in common. `slowed` are
    the points where a change is. With a `rule` each point takes as many samples as that wants.
    """

    points: tuple[str, ...] = NAMES
    samples: int = 5
    between: float = 0.03  # owen 6.5
    within: float = 0.01
    common: float = 0.8
    slowed: tuple[str, ...] = NAMES
    rule: Rule | None = None
    effect: Callable[[np.random.Generator], float] = normal


def boot(rng: np.random.Generator, shape: Shape, name: str, change: float = 0.0) -> Boot:
    """A boot whose steps take `change` percent longer."""
    shared = shape.effect(rng)
    points = {}
    for i, point in enumerate(shape.points):
        own = math.sqrt(shape.common) * shared + math.sqrt(1 - shape.common) * shape.effect(rng)
        steps = 40 * (1 + i / 4) * math.exp(shape.between * own)
        if point in shape.slowed:
            steps *= 1 + change / 100
        points[point] = _point(point, _steps(rng, shape, steps))
    started = f"2026-11-30T00:00:00.{rng.integers(10**6):06d}Z"
    subject = Subject(endpoint="http://127.0.0.1:1", model="simulated", boot=name)
    return Boot(id=name, started=started, subject=subject, points=points)


def _steps(rng: np.random.Generator, shape: Shape, mean: float) -> list[float]:
    taken: list[float] = []
    while more := shape.rule.more(taken) if shape.rule else shape.samples - len(taken):
        taken += (mean * np.exp(shape.within * rng.normal(size=more))).tolist()
    return taken


def _point(name: str, steps: list[float]) -> Point:
    case, _, streams = name.rpartition("-c")
    count = int(streams)
    prompts = tuple(hashlib.sha256(f"{case} {i}".encode()).hexdigest() for i in range(32))
    return Point(
        case=case,
        streams=count,
        text="real",
        prompts=prompts,
        samples=tuple(
            Sample(
                round=i,
                metrics={"step_ms": step, "tps": 2000 * count / step},
                completion_tokens=256 * count,
                prompt_tokens=32 * count,
            )
            for i, step in enumerate(steps)
        ),
    )


def result(*boots: Boot) -> Result:
    """Boots as one file has them."""
    return Result(
        schema="sparkserve.bench/1",
        mode="decode",
        seed=0,
        settings={"tokens": 256},
        machine={"cores": 2, "load": 0.5},
        boots=boots,
    )


def write(
    folder: Path, rng: np.random.Generator, shape: Shape, arm: str, boots: int, change: float
) -> list[Path]:
    """A file for each boot of an arm."""
    files = [folder / f"{arm}{i}.json" for i in range(boots)]
    for file in files:
        made = result(boot(rng, shape, file.stem, change))
        file.write_text(made.model_dump_json(by_alias=True), encoding="utf-8")
    return files
