"""Tasks that two systems both did, passed or not: McNemar's exact test, and what it can find."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALPHA = 0.05


def mcnemar(broke: int, fixed: int) -> float:
    """The two-sided exact p-value. `broke`: tasks that passed and now fail; `fixed`: the other way round.

    Tasks with one result on both sides say nothing about a difference and are not asked for.
    """
    from scipy import stats

    return float(stats.binomtest(broke, broke + fixed).pvalue) if broke + fixed else 1.0


def lost(broke: int, fixed: int) -> bool:
    """Whether more broke than were fixed, and McNemar's p is below 0.05."""
    return broke > fixed and mcnemar(broke, fixed) < ALPHA


def power(
    tasks: int, break_rate: float, fix_rate: float = 0.0, fails: Callable[[int, int], bool] = lost
) -> float:
    """The probability of `fails(broke, fixed)`, where every task breaks or is fixed at the given rates.

    Exact: the sum over all counts that can come, so `fails` is called about tasks^2/2 times. Raises
    ValueError for rates that are no probabilities.
    """
    same = 1 - break_rate - fix_rate
    if min(break_rate, fix_rate, same) < 0:
        raise ValueError(f"rates {break_rate} and {fix_rate} of {tasks} tasks")
    total = 0.0
    for broke in range(tasks + 1):
        for fixed in range(tasks + 1 - broke):
            ways = math.comb(tasks, broke) * math.comb(tasks - broke, fixed)
            chance = ways * break_rate**broke * fix_rate**fixed * same ** (tasks - broke - fixed)
            if chance > 0 and fails(broke, fixed):
                total += chance
    return min(1.0, total)
