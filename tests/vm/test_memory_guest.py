"""The memory of a node before a load, with the units that a Spark's plan has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve import nix

if TYPE_CHECKING:
    from guest import Guest

pytest_plugins = ("guest_fixtures",)

UNIT = "sparkserve-memory.service"
COPY_MIB = 250


def free_mib(guest: Guest) -> int:
    found = re.search(r"MemFree:\s+(\d+) kB", guest.sh("cat /proc/meminfo"))
    assert found
    return int(found[1]) >> 10


def test_a_load_finds_the_memory_that_a_copy_filled(guest: Guest) -> None:
    """CUDA counts cached files as used: a load after a copy of the checkpoint died (issues C02)."""
    units = nix.eval_json("lib.fleets.tp3-triangle.plans.spark-0.host.units")
    guest.sh(f"cat >/run/systemd/system/{UNIT} <<'END'\n{units[UNIT]}END\nsystemctl daemon-reload")
    guest.sh(f"dd if=/dev/zero of=/var/tmp/copy bs=1M count={COPY_MIB} status=none")
    filled = free_mib(guest)
    guest.sh(f"systemctl start {UNIT}")
    gained = free_mib(guest) - filled
    guest.sh(f"rm /var/tmp/copy /run/systemd/system/{UNIT}; systemctl daemon-reload")
    assert gained > 0.9 * COPY_MIB
