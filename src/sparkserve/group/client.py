"""An operator's question to the controller; only the head itself may ask."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal

from sparkserve.errors import SparkserveError
from sparkserve.group import protocol
from sparkserve.group.channel import connect
from sparkserve.group.launch import parts

if TYPE_CHECKING:
    from sparkserve.plan import Plan

ANSWER_S = 10.0
LOOK_S = 0.3


def ask(plan: Plan, what: Literal["status", "start", "stop"], seconds: float = ANSWER_S) -> protocol.Status:
    """Say `what` to the controller of `plan`'s fleet; its status right afterwards.

    Raises `GROUP.STATE` when no controller answers within `seconds`.
    """
    return asyncio.run(_ask(plan, what, seconds))


def wait(plan: Plan, seen: str, seconds: float) -> protocol.Status:
    """The status as soon as its `key` is not `seen`, or after `seconds`. Raises `GROUP.STATE`."""
    deadline = time.monotonic() + seconds
    while (status := ask(plan, "status")).key == seen and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return status


async def _ask(plan: Plan, what: Literal["status", "start", "stop"], seconds: float) -> protocol.Status:
    fabric, group = parts(plan)
    head = str(plan.fleet.nodes[0].address)
    problem = ""
    try:
        channel = await connect(head, group.control_port, seconds, str(fabric.management.address))
        try:
            await channel.send(protocol.Ask(what=what))
            answer = await channel.receive(seconds)
        finally:
            await channel.close()
        if isinstance(answer, protocol.Status):
            return answer
        problem = answer.reason if isinstance(answer, protocol.Refused) else f"answer {answer}"
    except (OSError, TimeoutError, protocol.ProtocolError) as error:
        problem = str(error) or "no answer"
    raise SparkserveError(
        "GROUP.STATE",
        expected="an answer of the group's controller",
        found=problem,
        where=f"{head}:{group.control_port}",
        do="On the head: systemctl status sparkserve-rank, and journalctl -u sparkserve-rank.",
    )
