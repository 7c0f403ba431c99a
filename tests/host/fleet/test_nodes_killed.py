"""Whatever dies, and whenever: `down` leaves nothing, and the next start works. 40 s."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import nodes
import pytest

from sparkserve.engine import procfs
from sparkserve.local import keeper, leftovers, members, names, triangle

if TYPE_CHECKING:
    from sparkserve.local.names import Names
    from sparkserve.plan import Plan

SEED = 20
ROUNDS = 8
# The plans of the child have the names of the test's own process.
SCRIPT = """import nodes
from sparkserve.local import triangle
triangle.power_on(nodes.plans('killed', '10.79.33', PID))
"""


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return nodes.plans("killed", "10.79.33")


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(nodes.ROOT))


def test_random_deaths(plans: list[Plan]) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a seed that can be repeated
    mine = triangle.names(plans[0].fleet.name)
    took: list[float] = []
    try:
        for _ in range(ROUNDS):
            story = one_round(mine, plans, chance, took)
            triangle.down(mine.fleet)
            assert leftovers.find(mine) == [], story
        fleet = triangle.power_on(plans)
        assert all(status.answers for status in triangle.status(mine.fleet).nodes)
        assert nodes.ssh(fleet, "spark-2", "systemctl is-active ssh") == "active"
    finally:
        triangle.down(mine.fleet, disks=True)
    assert leftovers.find(mine) == []


def one_round(mine: Names, plans: list[Plan], chance: random.Random, took: list[float]) -> str:
    """Start, kill the starter on its way or let it finish, kill some members; what happened, in words."""
    begin = time.monotonic()
    child = start(plans)
    if took and chance.random() < 0.7:
        delay = chance.uniform(0.2, 1.1) * max(took)
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.kill()
        story = f"starter killed after {delay:.2f} s"
    else:
        story = "started"
        assert child.wait(60) == 0
        took.append(time.monotonic() - begin)
    child.wait()
    for _ in range(chance.randrange(3)):
        found = everyone(mine)
        if found:
            pid = chance.choice(found)
            story += f", then {pid}"
            process = procfs.find(pid)
            if process is not None:
                process.send(signal.SIGKILL)
            time.sleep(chance.choice((0, 0.1, 0.6)))
    return story


def start(plans: list[Plan]) -> subprocess.Popen[bytes]:
    folder = os.path.dirname(__file__)  # noqa: PTH120
    path = os.pathsep.join([folder, *sys.path])
    argv = [sys.executable, "-c", SCRIPT.replace("PID", str(os.getpid()))]
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)


def everyone(mine: Names) -> list[int]:
    """All processes of the fleet, in an order that a seed can repeat: by age."""
    from sparkserve.local import cgroups, wiring

    pids = cgroups.detect().pids(mine.group)
    for netns in wiring.namespaces(mine):
        pids |= {process.pid for process in members.of_netns(names.NETNS / netns)}
    if (guard := keeper.find(mine)) is not None:
        pids.add(guard.pid)
    return sorted(pids)
