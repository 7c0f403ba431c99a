"""What can be said about a node's engine right now."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparkserve.engine import procfs, sockets
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from sparkserve.engine.record import NodeFiles, Run

HEALTH_S = 5.0


def report(files: NodeFiles) -> dict[str, str | int | float | None]:
    """State and figures of one node, as `status --json` prints them.

    `boot` is when it was started, which tells one start from another. `pss_bytes` counts shared pages once
    over all of the engine's processes; `canary_age_s` is the time since the last request of ours that was
    answered. Raises `ENGINE.STATE` when the record is damaged.
    """
    run = files.load()
    if run is None:
        return {"node": files.node, "state": "stopped"}
    alive = run.alive()
    return {
        "boot": datetime.fromtimestamp(run.started_at, UTC).isoformat(timespec="seconds"),
        "canary_age_s": round(time.time() - run.canary.at, 1) if run.canary else None,
        "endpoint": run.endpoint,
        "fleet_id": run.fleet_id,
        "log": str(files.log),
        "model": run.model,
        "node": files.node,
        "pid": run.engine.pid,
        "pss_bytes": procfs.pss_bytes(procfs.tree(run.init.pid)) if alive else None,
        "state": state(run),
        "uptime_s": round(time.time() - run.started_at, 1) if alive else None,
    }


def state(run: Run, *, health_s: float = HEALTH_S) -> str:
    """In one word (docs: `status --help`); a ready engine gets `health_s` seconds to answer /health."""
    if not run.alive():
        return "dead"
    if run.canary is None:
        return "starting" if run.up is not None and run.up.alive() else "abandoned"
    from sparkserve.engine import chat

    try:
        if not sockets.listens(run):
            return "silent"
        chat.health(run.endpoint, timeout_s=health_s)
    except (chat.ChatError, SparkserveError):
        return "silent"
    return "ready"
