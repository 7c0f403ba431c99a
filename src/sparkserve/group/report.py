"""What the controller tells operators, and what the front tells the controller."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkserve.front.state import FrontState
from sparkserve.group import phases, protocol

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.group.controller import Controller

FRESH_S = 5.0  # the front writes every second; an older file is of a front that is gone


class FrontWatch:
    """Reads front.json."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def hangs(self, boot: str, seconds: float, quiet_s: float) -> str | None:
        """Why the group of `boot` must be taken for hung, None when it need not.

        The front says "silent" earlier, to spare clients. To end a boot takes `seconds` without a token, and
        as long without a line in any engine's log (`quiet_s`): one large prefill gives no token either.
        """
        front = self._read(boot)
        if front is None or front.verdict != "silent" or quiet_s < seconds:
            return None
        age = front.last_token_age_s
        if age is not None and age < seconds:
            return None
        probe = f"last probe {front.canary.result}: {front.canary.detail or f'{front.canary.seconds:.0f} s'}"
        return f"no token for {age or quiet_s:.0f} s with {front.in_flight} requests in flight; {probe}"

    def in_flight(self, boot: str) -> int:
        """Requests that are with the engine; 0 when the front does not say."""
        front = self._read(boot)
        return 0 if front is None else front.in_flight

    def _read(self, boot: str) -> FrontState | None:
        try:
            front = FrontState.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None
        return front if front.boot == boot and time.time() - front.written_at < FRESH_S else None


def status(controller: Controller) -> protocol.Status:
    """The group now."""
    plan, boot, now = controller.plan, controller.boot, time.monotonic()
    ranks = []
    for node in plan.fleet.nodes:
        member = controller.members.present.get(node.rank)
        phase, since, adapters = boot.of(node.rank) if boot else (None, 0.0, ())
        trouble = controller.members.differing.get(node.rank, "") or (member.beat.trouble if member else "")
        ranks.append(
            protocol.RankStatus(
                rank=node.rank,
                node=node.name,
                connected=member is not None,
                phase=phase,
                phase_s=round(now - since, 1) if phase else None,
                adapters=adapters,
                trouble=trouble,
                beat_age_s=round(now - member.seen, 1) if member else None,
                fleet_id=member.hello.fleet_id if member else None,
            )
        )
    return protocol.Status(
        fleet=plan.fleet.name,
        fleet_id=controller.closure.fleet_id,
        state=controller.state.state,
        reason=controller.state.reason,
        wanted=controller.memory.wanted,
        number=controller.memory.number,
        since=controller.state.since,
        phase=phases.NAMES[max(0, boot.phase)] if boot else None,
        phase_s=round(now - boot.phase_since, 1) if boot else None,
        ranks=tuple(ranks),
        starts=controller.memory.starts,
    )
