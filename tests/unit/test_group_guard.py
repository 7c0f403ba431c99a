"""The group with memory guards: no engine without one, and its kill is the reason that everybody reads.

The guard's side is tests/guard; here it is a few values.
"""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from engine_values import closure
from group_values import engines, free_ports, gone, group, plan

from sparkserve import plan as plans
from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.group import controller, preflight, run_files, supervisor

if TYPE_CHECKING:
    from pathlib import Path

    from group_values import Group

pytestmark = pytest.mark.anyio
WORDS = "the memory guard killed its engine: MemAvailable 2.90 GiB"


class Guard:
    """What a supervisor asks its guard, answered by a test; `told` is what it was told."""

    def __init__(self) -> None:
        self.there = True
        self.against: str | None = None
        self.killed: str | None = None
        self.told: list[str] = []

    def prefix(self) -> list[str]:
        return [shutil.which("env") or "env"]

    def hindrance(self) -> str | None:
        return self.against

    def watches(self) -> bool:
        return self.there

    def starts(self) -> None:
        self.told.append("starts")

    def serves(self) -> None:
        self.told.append("serves")

    def ended(self) -> None:
        self.told.append("ended")

    async def verdict(self) -> str | None:
        return self.killed


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> list[Guard]:
    """The guard of each rank."""
    made = [Guard() for _ in range(3)]
    init = supervisor.Supervisor.__init__

    def guarded(self: supervisor.Supervisor, plan: Any, *given: Any, **named: Any) -> None:
        init(self, plan, *given, **named)
        self._guard = made[plan.node.rank]

    monkeypatch.setattr(supervisor.Supervisor, "__init__", guarded)
    monkeypatch.setattr(controller, "RETRY_S", 0.05)
    monkeypatch.setattr(controller, "PREFLIGHT_S", 2.0)
    monkeypatch.setattr(supervisor, "RETRY_S", 0.05)
    monkeypatch.setattr(preflight, "old_engines", lambda: [])
    return made


def pid(made: Group, rank: int) -> int:
    engine = run_files.engine(made.folder / f"{rank}/rank.json")
    assert engine is not None
    return engine.pid


async def test_a_kill_is_the_reason_and_the_group_comes_back(tmp_path: Path, guards: list[Guard]) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        guards[1].killed = WORDS
        for each in procfs.tree(pid(made, 1)):
            os.kill(each, signal.SIGKILL)
        assert await made.until_ended() == f"rank 1 (spark-1): {WORDS}"
        guards[1].killed = None
        assert (await made.until_up()).number == 2
        assert guards[1].told == ["starts", "serves", "ended", "starts", "serves"]


async def test_an_engine_whose_guard_is_gone_is_ended(tmp_path: Path, guards: list[Guard]) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        guards[2].there = False
        assert await made.until_ended() == "rank 2 (spark-2): its memory guard is gone"
        guards[2].against = "no memory guard watches"
        await made.until(lambda s: "no memory guard watches" in s.reason)
        await gone(tmp_path)
        assert engines(tmp_path) == []


async def test_short_memory_is_a_hindrance_and_no_start(tmp_path: Path, guards: list[Guard]) -> None:
    guards[0].against = "MemAvailable is 4000 MiB"
    async with group(tmp_path) as made:
        found = await made.until(lambda s: "MemAvailable" in s.reason)
        assert found.reason == "preflight: rank 0 (spark-0): MemAvailable is 4000 MiB"
        assert found.starts == ()
        guards[0].against = None
        assert (await made.until_up()).number > 1


async def test_a_supervisor_that_is_stopped_with_its_guard_says_why(
    tmp_path: Path, guards: list[Guard]
) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        guards[2].killed = "the memory guard killed its engine: MemAvailable cannot be read"
        await made.kill(2)
        assert await made.until_ended() == f"rank 2 (spark-2): {guards[2].killed}"


def test_a_closure_without_the_guard_of_its_plan_runs_nothing(tmp_path: Path) -> None:
    level = plans.GuardLevel(floor_mib=1024, line_mib=1424, interval_ms=250)
    guard = plans.Guard(startup=level, steady=level, rate_mib_s=8000, closest_ms=5, kill_ms=45)
    given = plan(2, free_ports()).model_copy(update={"guard": guard})
    with pytest.raises(SparkserveError, match="memory guard that the plan has; found none"):
        supervisor.Supervisor(given, closure(), run=tmp_path, logs=tmp_path)
