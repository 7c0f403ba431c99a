"""The rows that `status` prints for a fleet of several nodes. Pure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.group.look import Look
    from sparkserve.group.protocol import RankStatus, Status
    from sparkserve.plan import Plan
    from sparkserve.reach.health import Health


class Missing(NamedTuple):
    """A node that says nothing of itself: its state, and why."""

    state: str
    reason: str


OFF = Missing("off", "")
_GUARD = {"phase", "floor_mib", "available_kib", "low_water_kib", "low_water_engine_kib", "kills", "kill"}


def rows(plan: Plan, looks: Mapping[str, Look | Missing], health: Health) -> list[dict[str, Any]]:
    """A row for each node of the fleet of `plan`; `looks` has each node's word, or why there is none."""
    head = looks[plan.fleet.nodes[0].name]
    group = None if isinstance(head, Missing) else head.group
    found = []
    for node in plan.fleet.nodes:
        look = looks[node.name]
        rank = next((rank for rank in group.ranks if rank.rank == node.rank), None) if group else None
        row: dict[str, Any] = {
            **{"node": node.name, "endpoint": plan.serving.endpoint, "model": plan.serving.model},
            **{"boot": None, "pid": None, "pss_bytes": None, "fleet_id": rank and rank.fleet_id},
            **{"phase": rank and rank.phase, "phase_s": rank and rank.phase_s},
            **{"uptime_s": None, "canary_age_s": None, "guard": None},
        }
        if not isinstance(look, Missing):
            row |= {"boot": look.boot, "pid": look.pid, "pss_bytes": look.pss_bytes}
            row["guard"] = look.guard and look.guard.model_dump(mode="json", include=_GUARD)
        row["state"], row["reason"] = _state(look, group, rank, health)
        if group is not None and group.state == "up" and row["state"] != "off":
            row["uptime_s"] = round(time.time() - group.since, 1)
            row["canary_age_s"] = health.token_age_s
        found.append(row)
    return found


def _state(
    look: Look | Missing, group: Status | None, rank: RankStatus | None, health: Health
) -> tuple[str, str]:
    """A node's state and the reason for it: the nearest cause first."""
    if isinstance(look, Missing):
        # It may serve on: an sshd that does not answer ends no engine.
        serves = rank is not None and look.state == "unreachable" and rank.phase
        return look.state, look.reason + (f"; the controller says of its rank: {serves}" if serves else "")
    if look.unit == "inactive":  # not by itself: then it has failed, or starts anew
        return "stopped", "its supervisor is stopped"
    if look.unit != "active":
        words = f"its supervisor is {look.unit or 'unknown to systemd'}: {look.said or 'no word from it'}"
        # Of a guard that found memory unreadable, and took the supervisor with it.
        kill = look.guard.kill if look.guard else None
        return "lost", f"{kill.words()}; {words}" if kill and kill.available_kib is None else words
    if group is None or rank is None:
        return "lost", "the group's controller, on the head, does not answer"
    if not rank.connected:
        return "lost", rank.trouble or "its supervisor has no connection to the controller"
    if group.state != "up":
        return group.state, "; ".join(part for part in (rank.trouble, _reason(group)) if part)
    if health.verdict != "ok":
        return health.verdict or "silent", health.reason
    return "ready", rank.trouble


def _reason(group: Status) -> str:
    """Why the group is not up; of one that starts again also why it has to."""
    last = next((start for start in reversed(group.starts) if start.ended_at is not None), None)
    if group.state != "starting" or last is None:
        return group.reason
    return f"{group.reason}; boot {last.number} ended: {last.reason}"
