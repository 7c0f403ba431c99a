"""What a node can say about itself when an operator asks for the state of the fleet."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.group import client, run_files
from sparkserve.group.protocol import Status
from sparkserve.guard import state as guards

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.plan import Plan

ANSWER_S = 3.0  # the controller answers in milliseconds, or hangs


class Look(BaseModel):
    """The boot that this node last took part in; the engine's launcher and the memory of all its processes.

    `unit` is systemd's word for the supervisor, `said` the supervisor's last ones when that is not "active".
    `guard` is what the memory guard wrote last. `group` is what the controller says, on the head only.
    """

    model_config = ConfigDict(frozen=True)  # not strict: nodes may run a later version than who asks
    node: str
    boot: int | None
    pid: int | None
    pss_bytes: int | None
    unit: str
    said: str
    guard: guards.State | None = None
    group: Status | None


def look(plan: Plan, rank: Path = run_files.RANK, guard: Path = guards.FILE) -> Look:
    """This node now, which is that of `plan`; `rank` is its supervisor's file, `guard` the memory guard's."""
    engine = run_files.engine(rank)
    unit = _output("systemctl", "show", "--property=ActiveState", "--value", "sparkserve-rank.service")
    said = ""
    if unit != "active":
        said = _output("journalctl", "--quiet", "--unit=sparkserve-rank", "--lines=2", "--output=cat")
    return Look(
        node=plan.node.name,
        boot=run_files.boot(rank),
        pid=engine.pid if engine else None,
        pss_bytes=procfs.pss_bytes(procfs.tree(engine.pid)) if engine else None,
        unit=unit,
        said="; ".join(said.splitlines()),
        guard=guards.look(guard),
        group=_group(plan) if plan.node.rank == 0 and unit == "active" else None,
    )


def _group(plan: Plan) -> Status | None:
    try:
        to = client.controller(plan.model_dump(mode="json"))
        return Status.model_validate(client.ask(to, "status", ANSWER_S))
    except (SparkserveError, ValidationError):
        return None


def _output(*argv: str) -> str:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=ANSWER_S
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
