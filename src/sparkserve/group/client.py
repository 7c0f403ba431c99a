"""An operator's question to the controller, JSON in and out; only the head itself may ask.

Without the models of plan and protocol: they take longer to import than all else here to do, and a deployment
waits for ten such questions.
"""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.group import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_S = 10.0
LOOK_S = 0.1


class Controller(NamedTuple):
    """Where a fleet's controller listens, and the head's own address, from which it is asked."""

    host: str
    port: int
    source: str


def controller(plan: Mapping[str, Any]) -> Controller:
    """That of the fleet of a plan, as its JSON has it. Raises `GROUP.STATE` for a plan of no group."""
    try:
        head = plan["fleet"]["nodes"][0]["address"]
        return Controller(head, plan["group"]["control_port"], plan["fabric"]["management"]["address"])
    except (KeyError, IndexError, TypeError):
        raise wire.no_group("a plan without fabric and group", "the host closure") from None


def ask(to: Controller, what: str, seconds: float = ANSWER_S) -> dict[str, Any]:
    """Say status, start or stop to the controller; its `protocol.Status` right afterwards, as JSON.

    Raises `GROUP.STATE` when it gives none within `seconds`.
    """
    question = json.dumps({"type": "ask", "version": wire.VERSION, "what": what}) + "\n"
    try:
        with socket.create_connection((to.host, to.port), seconds, (to.source, 0)) as made:
            made.sendall(question.encode())
            line = made.makefile("rb").readline(wire.LINE_BYTES)
        said = json.loads(line) if line else {"reason": "no answer"}
    except (OSError, ValueError) as error:
        said = {"reason": str(error) or "no answer"}
    answer: dict[str, Any] = said if isinstance(said, dict) else {}
    if answer.get("type") == "status":
        return answer
    raise SparkserveError(
        "GROUP.STATE",
        expected="an answer of the group's controller",
        found=str(answer.get("reason", said))[:300],
        where=f"{to.host}:{to.port}",
        do="On the head: systemctl status sparkserve-rank, and journalctl -u sparkserve-rank.",
    )


def wait(to: Controller, seen: str, seconds: float) -> dict[str, Any]:
    """The status as soon as its key is not `seen`, or after `seconds`. Raises `GROUP.STATE`."""
    names = ("number", "state", "phase", "wanted", "reason")
    deadline = time.monotonic() + seconds
    while True:
        status = ask(to, "status")
        if wire.key(*(status[name] for name in names)) != seen or time.monotonic() > deadline:
            return status
        time.sleep(LOOK_S)
