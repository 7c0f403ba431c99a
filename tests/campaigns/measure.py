"""What the comparison is worth, measured: writes docs/results/stats.json. About 20 minutes on one core.

PYTHONPATH=src:tests python -m campaigns.measure --output docs/results/stats.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from campaigns import simulated, stopping, study
from sparkserve.bench.settings import Settings
from sparkserve.stats.stopping import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COUNT = 1000
MEANS = 10_000
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


def compared(seed: int) -> list[dict[str, Any]]:
    return [row(seed, number) for number in range(len(list(simulations())))]


def row(seed: int, number: int) -> dict[str, Any]:
    """One line of `simulations`, which can be done again alone."""
    what, shape, boots, change, spread = list(simulations())[number]
    counts = study.run(np.random.default_rng([seed, number]), shape, boots, change, COUNT, spread)
    found = {"what": what, "boots": list(boots), "change": change, **counts.as_dict()}
    print(json.dumps(found), flush=True)
    return found


def stopped(seed: int) -> list[dict[str, Any]]:
    rows = []
    for draw in (stopping.normal, stopping.lognormal):
        for spread in (0.01, 0.02, 0.03, 0.1, 0.3, 1.0):
            for rule in (BENCH, Rule(pilot=3), Rule()):
                drawn = draw(np.random.default_rng([seed, len(rows)]), spread, (MEANS, rule.most))
                row = {"samples": draw.__name__, "sd": 100 * spread, "pilot": rule.pilot, "most": rule.most}
                row["precision"] = rule.precision
                for stop in (stopping.by_rule, stopping.naive):
                    found = stopping.coverage(stop, rule, drawn)
                    row[stop.__name__] = study.rate(found.covered, found.count) | {"taken": found.samples}
                rows.append(row)
                print(json.dumps(row), flush=True)
    return rows


def scripted(seed: int) -> dict[str, Any]:
    from campaigns import scripted_arms

    return scripted_arms.study_of(seed, COUNT)


PARTS: dict[str, Callable[[int], Any]] = {"compared": compared, "stopped": stopped, "scripted": scripted}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--output", type=Path, required=True, help="other parts of this file are kept")
    options.add_argument("--only", choices=PARTS, action="append")
    options.add_argument("--seed", type=int, default=20261130)
    given = options.parse_args()
    document = json.loads(given.output.read_text()) if given.output.exists() else {}
    for name in given.only or PARTS:
        start = time.monotonic()
        figures = PARTS[name](given.seed)
        document[name] = {
            "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
            "commit": _git("rev-parse", "--short", "HEAD"),
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}",
            "command": f"python -m campaigns.measure --only {name} --seed {given.seed}",
            "seed": given.seed,
            "seconds": round(time.monotonic() - start),
            "figures": figures,
        }
        given.output.write_text(json.dumps(document, indent=1) + "\n")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
