"""A lost worker, as a user meets it: health turns, `status` names it, `up` brings the group back as a group.

3 min on two cores.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest
from command_fleet import SCHEDULER, Commanded, commanded
from group_fleet import NODES
from nodes import until

from sparkserve.local import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOST = "spark-2"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commanded]:
    with commanded(tmp_path_factory.mktemp("checkout"), "10.79.42") as made:
        yield made


def kill(fleet: Commanded) -> None:
    fleet.sh(LOST, f"kill -9 $({SCHEDULER})")


def stop(fleet: Commanded) -> None:
    fleet.sh(LOST, f"kill -STOP $({SCHEDULER})")


def freeze(fleet: Commanded) -> None:
    faults.freeze(fleet.fleet(), LOST)


def cut_power(fleet: Commanded) -> None:
    faults.power_cut(fleet.fleet(), LOST)


def boots(fleet: Commanded) -> set[int]:
    """The boots whose engines run, by the logs that their processes write."""
    command = f"readlink /proc/$({SCHEDULER})/fd/1"
    return {int(fleet.sh(node, command).split("/boot-")[1].split("/")[0]) for node in NODES}


@pytest.mark.parametrize("lose", [kill, stop, freeze, cut_power])
def test_a_lost_worker(fleet: Commanded, lose: Callable[[Commanded], None]) -> None:
    fleet.up()
    (before,) = boots(fleet)
    begin = time.monotonic()
    lose(fleet)
    until("health to turn", lambda: fleet.health() != 200, 10)
    turned = time.monotonic() - begin
    assert turned < 10
    sys.stderr.write(f"{lose.__name__}: health turned after {turned:.1f} s\n")
    code, status = fleet.command("status")
    assert code == 52
    rows = {row["node"]: row for row in status["nodes"]}
    assert rows[LOST]["state"] != "ready"
    assert any(LOST in str(row.get("reason")) for row in rows.values()) or rows[LOST]["state"] == "off", rows
    if lose is freeze:
        faults.thaw(fleet.fleet(), LOST)
    fleet.up()
    assert fleet.health() == 200
    assert "Paris" in fleet.ask("What is the capital of France?")
    code, status = fleet.command("status")
    assert (code, [row["state"] for row in status["nodes"]]) == (0, ["ready"] * 3)
    assert len({row["fleet_id"] for row in status["nodes"]}) == 1
    (after,) = boots(fleet)  # no rank of the boot before goes on
    assert after > before
