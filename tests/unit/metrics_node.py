"""A head's files as its services write them, in a folder, and what metrics make of them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from engine_values import closure
from fabric_host import golden

from sparkserve.engine import procfs
from sparkserve.front.state import FrontState, Group, Probe, write
from sparkserve.group import memory, run_files
from sparkserve.group.memory import Memory
from sparkserve.metrics import node, scrape
from sparkserve.metrics.families import exposition

HEAD = golden("tp3-triangle")[0]
GUARD: dict[str, Any] = {
    **{
        "seq": 9,
        "pid": 1,
        "phase": "steady",
        "floor_mib": 3072,
        "line_mib": 3472,
        "engine": True,
        "reach": True,
    },
    **{"available_kib": 12 << 20, "low_water_kib": 7 << 20, "low_water_engine_kib": 8 << 20, "kills": 1},
    **{"lacks": ["mlockall"], "end": 9},
    "kill": {
        **{"phase": "startup", "floor_mib": 5120, "line_mib": 5520, "unix_ms": 1_790_000_000_000},
        **{"available_kib": 5 << 20, "gone_ms": 12},
    },
}


class Files:
    """A head that serves. Methods replace what one of its services wrote."""

    def __init__(self, folder: Path) -> None:
        self.places = node.Places(
            folder / "run", folder / "state", folder / "meminfo", folder / "net", folder / "profile"
        )
        for each in (self.places.run, self.places.state):
            each.mkdir()
        self.places.meminfo.write_text("MemTotal:  128000000 kB\nMemFree: 1 kB\nMemAvailable:  12582912 kB\n")
        self.places.profile.symlink_to("sparkserve-12-link")
        assert HEAD.fabric is not None
        for link in HEAD.fabric.links:
            (self.places.net / link.interface).mkdir(parents=True)
            (self.places.net / link.interface / "carrier").write_text("1\n")
        self.rank()
        self.guard()
        self.front()
        self.group("up")
        memory.save(self.places.state / "group.json", Memory(number=7))

    def rank(self, pid: int = 0) -> None:
        """The supervisor's word: this process is the engine, or `pid`."""
        engine = procfs.find(os.getpid()) if not pid else procfs.Process(pid, 1)
        run_files.note_engine(self.places.run / "rank.json", 7, engine, {"oneshot-collectives": "abc"})

    def guard(self, age_s: float = 0.0, **changes: Any) -> None:
        """The guard's last sample."""
        value = {**GUARD, "monotonic_ms": int((time.monotonic() - age_s) * 1000), **changes}
        (self.places.run / "guard.json").write_text(json.dumps(value))

    def group(self, state: Any, reason: str = "") -> None:
        """The controller's word."""
        write(
            self.places.run / "group.json",
            Group(state=state, reason=reason, boot="7-00c0ffee", since=1_790_000_000.0),
        )

    def front(self, age_s: float = 0.0, **changes: Any) -> None:
        """The front's word."""
        state = FrontState(
            written_at=time.time() - age_s,
            pid=1,
            boot="7-00c0ffee",
            verdict="ok",
            reason="",
            last_token_age_s=1.5,
            in_flight=2,
            requests={"ok": 40, "refused": 3},
            canary=Probe(result="ok", seconds=0.2, age_s=4.0),
        )
        write(self.places.run / "front.json", state.model_copy(update=changes))

    def read(self) -> dict[str, float]:
        """All samples by name and labels, by way of the text that Prometheus gets."""
        found = node.samples(HEAD, closure(), Path("/nix/store/host"), self.places)
        return scrape.read(exposition(found).decode())
