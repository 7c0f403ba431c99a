"""The files that the parts of one node tell each other with, all on a tmpfs, and the folders that last."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from sparkserve.engine.procfs import Process

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN = Path("/run/sparkserve")
LOGS = Path("/var/log/sparkserve")
STATE = Path("/var/lib/sparkserve")
RANK = RUN / "rank.json"  # the rank supervisor's engine
_NONE: Mapping[str, str] = MappingProxyType({})


def note_engine(path: Path, number: int, engine: Process | None, armed: Mapping[str, str] = _NONE) -> None:
    """Write which engine runs on this node, None for none; `armed` are its adapters and their digests."""
    process = None if engine is None else {"pid": engine.pid, "start": engine.start}
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"boot": number, "engine": process, "armed": dict(armed)}) + "\n")
    part.replace(path)


def boot(path: Path) -> int | None:
    """The boot that the supervisor was last told to take part in."""
    try:
        return int(json.loads(path.read_text())["boot"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def armed(path: Path) -> dict[str, str]:
    """The adapters that the last engine said were armed, each with the digest that its ranks agreed on."""
    try:
        return {str(name): str(digest) for name, digest in json.loads(path.read_text())["armed"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def engine(path: Path) -> Process | None:
    """The engine that runs on this node, if any."""
    try:
        value = json.loads(path.read_text())["engine"]
        found = None if value is None else Process(int(value["pid"]), int(value["start"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found is not None and found.alive() else None
