"""Arms of the same engine: real requests to the scripted engine, boots that differ by chance, no change.

What the machine does meanwhile is in the samples too: both arms take turns.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import scripted

from campaigns import simulated, study
from sparkserve.bench import results, run
from sparkserve.bench.compare import compare
from sparkserve.bench.purity import Limits
from sparkserve.bench.settings import Settings
from sparkserve.client.client import Client
from sparkserve.gates.evidence import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkserve.bench.results import Boot

BOOTS = 3  # in each arm
SETTINGS = Settings(cases=("prose",), streams=(1, 2), tokens=8, min=2, max=2, warm_up=False)
LIMITS = Limits(gap_s=0)
SCRIPT = scripted.Script(step_ms=1, boot_sd=0.03, noise_sd=0.01)


async def _measure(endpoint: str, name: str) -> Boot:
    async with Client(endpoint) as client:
        subject = Subject(endpoint="scripted", model=SCRIPT.model, boot=name)
        return await run.measure_boot(client, SCRIPT.model, SETTINGS, subject=subject, limits=LIMITS)


def boot(seed: int, number: int, name: str, slow: float = 0.0) -> Boot:
    """One start of the engine, measured; its steps take `slow` percent longer."""
    with scripted.serve(replace(SCRIPT, seed=seed, boot=number, slow=slow)) as endpoint:
        return asyncio.run(_measure(endpoint, name))


def campaign(folder: Path, seed: int, boots: int, slow: float = 0.0) -> list[list[Path]]:
    """The files of arm A and of arm B, of which A is slower."""
    files: list[list[Path]] = [[], []]
    for number in range(2 * boots):
        arm = (number + seed) % 2
        name = f"{'ab'[arm]}{number}"
        measured = boot(seed, number, name, slow * (arm == 0))
        files[arm].append(folder / f"{name}.json")
        files[arm][-1].write_text(simulated.result(measured).model_dump_json(by_alias=True))
    return files


class Shard(NamedTuple):
    """Campaigns without a change, and the spreads between boots that they saw, in percent."""

    counts: study.Counts
    spreads: list[float]
    points: list[str]


def shard(seed: int, count: int) -> Shard:
    """`count` campaigns of BOOTS and BOOTS, with the seeds from `seed` on."""
    found = Shard(study.Counts(), [], [])
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            a, b = campaign(Path(folder), seed + number, BOOTS)
            compared = compare([results.read(file) for file in a], [results.read(file) for file in b])
            found.counts.add(compared, lambda point: 0.0)
            gating = [row for row in compared.rows if row.gates]
            found.spreads.extend(row.sd_b for row in gating if row.sd_b is not None)
            found.points[:] = [row.point for row in gating]
    print(found.counts.campaigns, "campaigns,", found.counts.different, "different", flush=True)
    return found


def total(shards: Iterable[Shard]) -> dict[str, Any]:
    """All of them together."""
    counts = study.Counts()
    spreads: list[float] = []
    points: list[str] = []
    for each in shards:
        counts.join(each.counts)
        spreads += each.spreads
        points = each.points
    sd = round(statistics.median(spreads), 2)
    return {"boots": [BOOTS, BOOTS], "points": points, **counts.as_dict(), "sd_between_boots": sd}
