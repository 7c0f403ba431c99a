"""All ranks have the same adapters with the same settings on the same SGLang, or none goes on."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from sparkserve.adapters.contract import Refused

if TYPE_CHECKING:
    from sparkserve.adapters.contract import Rendezvous

GOODBYE_S = 5


def agree(rank: int, size: int, mine: dict[str, Any], meet: Rendezvous, *, timeout_s: float) -> None:
    """Compare `mine` (adapter name to its settings and fingerprint) over all ranks.

    Raises `Refused`, on every rank, naming what differs and the ranks, or the ranks that did not come within
    `timeout_s`.
    """
    meet.put(f"adapters/{rank}", json.dumps(mine, sort_keys=True))
    deadline = time.monotonic() + timeout_s
    values: dict[int, dict[str, Any]] = {}
    absent = []
    for each in range(size):
        try:
            text = meet.get(f"adapters/{each}", max(0.1, deadline - time.monotonic()))
            values[each] = json.loads(text)
        except TimeoutError:
            absent.append(each)
    if absent:
        raise Refused(f"no adapters from {_ranks(absent)} in {timeout_s:g} s")
    found = difference(values)
    if found is not None:
        _goodbye(rank, size, meet)
        raise Refused(f"ranks differ: {found}", adapter=found.partition(".")[0])


def difference(values: dict[int, dict[str, Any]]) -> str | None:
    """The first thing in which the ranks' values differ, in words, with the ranks."""
    flat = {rank: dict(_leaves(value)) for rank, value in values.items()}
    for key in sorted({key for each in flat.values() for key in each}):
        by_value: dict[str, list[int]] = {}
        for rank, each in flat.items():
            by_value.setdefault(json.dumps(each[key]) if key in each else "nothing", []).append(rank)
        if len(by_value) > 1:
            return f"{key} is " + ", ".join(f"{v} on {_ranks(r)}" for v, r in by_value.items())
    return None


def _leaves(value: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    if not value and path:
        return [(path, value)]
    leaves: list[tuple[str, Any]] = []
    for key, each in value.items():
        name = f"{path}.{key}" if path else key
        leaves += _leaves(each, name) if isinstance(each, dict) else [(name, each)]
    return leaves


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _goodbye(rank: int, size: int, meet: Rendezvous) -> None:
    """Wait shortly until all have read: rank 0 holds the meeting place, which ends with it."""
    with contextlib.suppress(Exception):
        meet.put(f"adapters/read/{rank}", "")
        deadline = time.monotonic() + GOODBYE_S
        for each in range(size):
            meet.get(f"adapters/read/{each}", max(0.1, deadline - time.monotonic()))
