"""What the comparison is worth, measured: writes docs/results/stats.json. About 20 minutes on one core.

PYTHONPATH=src:tests python -m campaigns.measure --output docs/results/stats.json
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from campaigns import simulated, stopping, study
from sparkserve.bench.settings import Settings
from sparkserve.stats.stopping import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

COUNT = 1000
MEANS = 10_000
SHARD = 20  # campaigns of scripted engines in one process at a time
USUAL = simulated.Shape()
BENCH = Rule(Settings().precision, Settings().min, Settings().max)  # what `sparkserve bench` does by default
BOOTS = (3, 5, 8)


def simulations() -> Iterator[tuple[str, simulated.Shape, tuple[int, int], float, float]]:
    """What it is, the machine, boots in A and B, the change in percent, and how much more A spreads."""
    for boots in BOOTS:
        for change in (0, 2, 5, 10):
            yield "all points", USUAL, (boots, boots), change, 1
    for boots in BOOTS:
        for change in (5, 10):
            one = replace(USUAL, slowed=USUAL.points[:1])
            yield "one point of 8", one, (boots, boots), change, 1
    for boots in BOOTS:
        ruled = replace(USUAL, within=0.03, rule=BENCH)
        yield "stopping rule, samples of sd 3 %", ruled, (boots, boots), 0, 1
    for common in (0.0, 1.0):
        yield f"points share {common:.0%} of a boot", replace(USUAL, common=common), (3, 3), 0, 1
    for boots in BOOTS:
        yield "skewed boots (skewness 2)", replace(USUAL, effect=simulated.skewed), (boots, boots), 0, 1
    yield "A spreads twice as much", USUAL, (3, 3), 0, 2
    yield "A spreads twice as much", USUAL, (8, 8), 0, 2
    yield "unequal arms", USUAL, (3, 8), 0, 1
    yield "unequal arms, A spreads twice as much", USUAL, (3, 8), 0, 2


def compared(seed: int, jobs: Executor) -> list[dict[str, Any]]:
    return list(jobs.map(row, itertools.repeat(seed), range(len(list(simulations())))))


def row(seed: int, number: int) -> dict[str, Any]:
    """One line of `simulations`, with random numbers of its own."""
    what, shape, boots, change, spread = list(simulations())[number]
    counts = study.run(np.random.default_rng([seed, number]), shape, boots, change, COUNT, spread)
    return shown({"what": what, "boots": list(boots), "change": change, **counts.as_dict()})


def shown(found: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(found), flush=True)
    return found


def stopped(seed: int, jobs: Executor) -> list[dict[str, Any]]:
    spreads = (0.01, 0.02, 0.03, 0.1, 0.3, 1.0)
    cases = list(itertools.product((stopping.normal, stopping.lognormal), spreads, (BENCH, Rule(pilot=3))))
    return list(jobs.map(means, itertools.repeat(seed), range(len(cases)), *zip(*cases, strict=True)))


def means(seed: int, number: int, draw: stopping.Draw, spread: float, rule: Rule) -> dict[str, Any]:
    """How often each rule's interval has the mean."""
    drawn = draw(np.random.default_rng([seed, number]), spread, (MEANS, rule.most))
    found: dict[str, Any] = {"samples": draw.__name__, "sd": 100 * spread, **asdict(rule)}
    for stop in (stopping.by_rule, stopping.naive):
        covered = stopping.coverage(stop, rule, drawn)
        found[stop.__name__] = study.rate(covered.covered, covered.means) | {
            "taken": round(covered.samples, 1)
        }
    return shown(found)


def scripted(seed: int, jobs: Executor) -> dict[str, Any]:
    from campaigns import scripted_arms

    starts = range(0, COUNT, SHARD)
    parts = jobs.map(scripted_arms.shard, (seed + start for start in starts), itertools.repeat(SHARD))
    return scripted_arms.total(parts)


PARTS: dict[str, Callable[[int, Executor], Any]] = {
    "compared": compared,
    "stopped": stopped,
    "scripted": scripted,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--output", type=Path, required=True, help="other parts of this file are kept")
    options.add_argument("--only", choices=PARTS, action="append")
    options.add_argument("--seed", type=int, default=20261130)
    options.add_argument("--jobs", type=int, default=1, help="processes")
    given = options.parse_args()
    document = json.loads(given.output.read_text()) if given.output.exists() else {}
    for name in given.only or PARTS:
        start = time.monotonic()
        with ProcessPoolExecutor(given.jobs) as jobs:
            figures = PARTS[name](given.seed, jobs)
        document[name] = {
            "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
            "commit": _git("rev-parse", "--short", "HEAD"),
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}",
            "command": f"python -m campaigns.measure --only {name} --seed {given.seed} --jobs {given.jobs}",
            "seed": given.seed,
            "seconds": round(time.monotonic() - start),
            "figures": figures,
        }
        given.output.write_text(json.dumps(document, indent=1) + "\n")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
