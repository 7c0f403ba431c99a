"""What `status` says of each node of a group: the nearest cause first."""

from __future__ import annotations

import time
from typing import Any

import pytest
from local_values import PLANS

from sparkserve.group.look import Look
from sparkserve.group.protocol import RankStatus, Status
from sparkserve.guard.state import State
from sparkserve.reach import rows
from sparkserve.reach.health import Health
from sparkserve.reach.rows import Missing

OK = Health("ok", "", 0.5)
NODES = ("spark-0", "spark-1", "spark-2")


def status(state: str = "up", ranks: dict[int, dict[str, Any]] | None = None, **changes: Any) -> Status:
    found = [
        RankStatus(
            **{
                **{"rank": rank, "node": node, "connected": True, "phase": "ready", "phase_s": 9.0},
                **{"fleet_id": "f" * 64, **(ranks or {}).get(rank, {})},
            }
        )
        for rank, node in enumerate(NODES)
    ]
    value = {
        **{"fleet": "local-triangle", "fleet_id": "f" * 64, "state": state, "reason": "", "wanted": True},
        **{"number": 4, "since": time.time() - 60, "phase": None, "phase_s": None},
        **{"ranks": found, "starts": (), **changes},
    }
    return Status.model_validate(value)


def look(node: str, **changes: Any) -> Look:
    value = {
        "node": node,
        "boot": 4,
        "pid": 1,
        "pss_bytes": 10**9,
        "unit": "active",
        "said": "",
        "group": None,
    }
    return Look.model_validate(value | changes)


def looks(group: Status | None, **changes: Look | Missing) -> dict[str, Look | Missing]:
    return {
        node: changes.get(
            node.replace("-", ""),
            Look(
                node=node,
                boot=4,
                pid=100 + rank,
                pss_bytes=10**9,
                unit="active",
                said="",
                group=group if rank == 0 else None,
            ),
        )
        for rank, node in enumerate(NODES)
    }


def states(found: list[dict[str, Any]]) -> list[str]:
    return [row["state"] for row in found]


def test_a_group_that_serves() -> None:
    found = rows.rows(PLANS[0], looks(status()), OK)
    assert states(found) == ["ready"] * 3
    row = found[1]
    assert 59 < row.pop("uptime_s") < 70
    assert row == {
        **{"node": "spark-1", "state": "ready", "reason": "", "boot": 4, "pid": 101, "pss_bytes": 10**9},
        **{"phase": "ready", "phase_s": 9.0, "fleet_id": "f" * 64, "canary_age_s": 0.5},
        **{"endpoint": PLANS[0].serving.endpoint, "model": "smollm2-135m", "guard": None},
    }


def guard(**changes: Any) -> State:
    value = {
        **{"seq": 7, "end": 7, "pid": 9, "monotonic_ms": 5, "phase": "steady", "floor_mib": 3072},
        **{"line_mib": 3312, "engine": True, "reach": True, "available_kib": 8 << 20, "kills": 0},
        **{"low_water_kib": 6 << 20, "low_water_engine_kib": 7 << 20, "kill": None, "lacks": ()},
    }
    return State.model_validate(value | changes)


def test_what_the_memory_guard_saw_is_in_the_row() -> None:
    found = rows.rows(PLANS[0], looks(status(), spark1=look("spark-1", guard=guard())), OK)
    assert found[1]["guard"]["low_water_engine_kib"] == 7 << 20
    assert (found[0]["guard"], found[1]["guard"]["phase"]) == (None, "steady")


def test_a_supervisor_that_went_with_its_guard_says_so() -> None:
    kill = {
        **{"phase": "steady", "floor_mib": 3072, "line_mib": 3312, "unix_ms": 1, "gone_ms": 2},
        "available_kib": None,
    }
    gone = look("spark-1", unit="failed", said="", guard=guard(kills=1, kill=kill))
    found = rows.rows(PLANS[0], looks(status("down"), spark1=gone), OK)
    assert found[1]["reason"].startswith("the memory guard killed its engine: MemAvailable cannot be read; ")


def test_a_hung_group_is_not_ready() -> None:
    found = rows.rows(PLANS[0], looks(status()), Health("silent", "no token for 12 s"))
    assert [(row["state"], row["reason"]) for row in found] == [("silent", "no token for 12 s")] * 3
    found = rows.rows(PLANS[0], looks(status()), Health("", "no answer from there"))
    assert states(found) == ["silent"] * 3


def test_a_node_without_power() -> None:
    gone = {"connected": False, "phase": None, "fleet_id": None}
    group = status("down", {2: gone}, reason="rank 2 (spark-2) not connected")
    found = rows.rows(PLANS[0], looks(group, spark2=rows.OFF), Health("down", "x"))
    assert states(found) == ["down", "down", "off"]
    assert found[0]["reason"] == "rank 2 (spark-2) not connected"
    assert found[2]["pid"] is found[2]["pss_bytes"] is found[2]["fleet_id"] is found[2]["uptime_s"] is None


def test_a_node_whose_sshd_is_stopped_may_serve_on() -> None:
    found = rows.rows(PLANS[0], looks(status(), spark1=Missing("unreachable", "Connection timed out")), OK)
    assert states(found) == ["ready", "unreachable", "ready"]
    assert found[1]["reason"] == "Connection timed out; the controller says of its rank: ready"


def test_a_head_that_is_off_or_hangs() -> None:
    found = rows.rows(PLANS[0], looks(None, spark0=rows.OFF), Health("", "no answer"))
    assert states(found) == ["off", "lost", "lost"]
    assert (found[1]["pid"], found[1]["pss_bytes"]) == (101, 10**9)
    found = rows.rows(PLANS[0], looks(None), OK)
    assert states(found) == ["lost"] * 3
    assert found[0]["reason"] == "the group's controller, on the head, does not answer"


def test_a_supervisor_that_ended_says_its_last_words() -> None:
    dead = Look(
        node="spark-1", boot=4, pid=None, pss_bytes=None, unit="failed", said="killed; failed", group=None
    )
    gone = {"connected": False, "phase": None}
    found = rows.rows(PLANS[0], looks(status("down", {1: gone}), spark1=dead), Health("down", ""))
    assert (found[1]["state"], found[1]["reason"]) == ("lost", "its supervisor is failed: killed; failed")


def test_a_rank_that_the_controller_refuses_says_why() -> None:
    other = {"connected": False, "phase": None, "trouble": "rank 1 (spark-1) has another engine root"}
    found = rows.rows(PLANS[0], looks(status("down", {1: other}, reason="r")), Health("down", ""))
    assert (found[1]["state"], found[1]["reason"]) == ("lost", "rank 1 (spark-1) has another engine root")
    assert (found[0]["state"], found[0]["reason"]) == ("down", "r")
    cable = {"trouble": "no carrier on enp1s0f0np0 to rank 1"}
    found = rows.rows(PLANS[0], looks(status("down", {2: cable}, reason="r")), Health("down", ""))
    assert found[2]["reason"] == "no carrier on enp1s0f0np0 to rank 1; r"


@pytest.mark.parametrize("state", ["starting", "draining", "down"])
def test_a_group_in_between(state: str) -> None:
    found = rows.rows(PLANS[0], looks(status(state, reason="r")), Health(state, "r"))
    assert states(found) == [state] * 3
    assert found[0]["uptime_s"] is None
    assert found[0]["phase"] == "ready"


def test_a_group_that_starts_again_says_why() -> None:
    ended = {"number": 3, "at": 1.0, "ended_at": 9.0, "reason": "rank 2 (spark-2): killed"}
    group = status("starting", reason="importing", starts=[ended, {"number": 4, "at": 10.0}])
    found = rows.rows(PLANS[0], looks(group), Health("starting", "importing"))
    assert found[0]["reason"] == "importing; boot 3 ended: rank 2 (spark-2): killed"
