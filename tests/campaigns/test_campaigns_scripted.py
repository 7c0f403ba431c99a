"""Arms of equal engines are seldom called different, and a slow one is found: real requests, real files."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from scipy import stats

from campaigns import scripted_arms
from sparkserve.bench import results
from sparkserve.bench.compare import compare

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 1e-6  # of false alarms


def test_equal_engines() -> None:
    count, seed = 200, secrets.randbits(32)
    print("seed", seed)
    found = scripted_arms.shard(seed, count).counts.different
    low, high = stats.binom.ppf([BUDGET / 2, 1 - BUDGET / 2], count, 0.05)
    assert low <= found <= high


def test_a_slow_engine_is_found(tmp_path: Path) -> None:
    """Ten times as slow: on a busy machine boots whose steps take 1 ms differ by a third."""
    seed = secrets.randbits(32)
    print("seed", seed)
    files = scripted_arms.campaign(tmp_path, seed, 5, slow=900)
    a, b = ([results.read(file) for file in arm] for arm in files)
    assert compare(a, b).regression
