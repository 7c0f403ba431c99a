"""The engine's own cgroup, below its unit's: what the guard kills."""

from __future__ import annotations

from pathlib import Path

OWN = Path("/proc/self/cgroup")
# Version 2 alone, version 2 beside 1, version 1: in the order in which the guard looks (modules/guard.nix).
_ROOTS = (("", "/sys/fs/cgroup"), ("", "/sys/fs/cgroup/unified"), ("name=systemd", "/sys/fs/cgroup/systemd"))
NAME = "engine"


def make(own: Path = OWN, top: Path = Path("/")) -> Path:
    """Make it, below this process's. Raises OSError, FileNotFoundError when no hierarchy is there."""
    places = dict(line.split(":", 2)[1:] for line in own.read_text().splitlines())
    for controllers, root in _ROOTS:
        if controllers not in places:
            continue
        folder = top / root.lstrip("/") / places[controllers].lstrip("/")
        if (folder / "cgroup.procs").exists():
            engine = folder / NAME
            engine.mkdir(exist_ok=True)
            return engine
    raise FileNotFoundError("no cgroup of this process in /sys/fs/cgroup")
