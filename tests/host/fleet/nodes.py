"""A laptop fleet of a test's own: another name, other addresses, nothing shared with the user's."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import plan
from sparkserve.engine import procfs
from sparkserve.local import cgroups

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.engine.procfs import Process
    from sparkserve.local.names import Names
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan

ROOT = Path(__file__).parents[3]
INIT, SSHD = "init.scope", "system.slice/ssh.service"
RANK, FRONT = "system.slice/sparkserve-rank.service", "system.slice/sparkserve-front.service"


def plans(name: str, network: str, pid: int | None = None) -> list[Plan]:
    """The golden plans of local-triangle under another name, in the management network `network`.0/24.

    Without the policy of their operating system: nobody activates it here, so nodes are wired from outside.
    """
    pid = os.getpid() if pid is None else pid
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = []
    for file in sorted((ROOT / "tests/golden/local-triangle").glob("*.json")):
        value = json.loads(file.read_text().replace("10.77.0.", f"{network}."))
        value["fleet"]["name"] = f"{name}-{pid}"
        value["serving"]["port"] = port
        value["host"] |= {"files": {}, "units": {}, "sysctls": {}, "kernel_args": [], "mask": []}
        found.append(plan.parse(value))
    return found


def attempt(fleet: Fleet, node: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command on a node, with any outcome."""
    argv = ["ssh", "-F", str(fleet.ssh_config), node, command]
    return subprocess.run(argv, env=fleet.environment, capture_output=True, text=True, timeout=60)


def ssh(fleet: Fleet, node: str, command: str) -> str:
    """The output of a shell command on a node, which must succeed."""
    done = attempt(fleet, node, command)
    assert done.returncode == 0, f"{node}: {command}: {done.stderr}{done.stdout}"
    return done.stdout.strip()


def processes(names: Names, node: str, unit: str) -> list[Process]:
    """The processes of a node's systemd unit (INIT, SSHD, RANK, FRONT), whatever state the node is in."""
    hierarchies = cgroups.detect().hierarchies
    managed = [each for each in hierarchies if not each.options or each.has("name=systemd")]
    found = set()
    for each in managed:
        folder = each.path / names.group / node / unit
        for procs in folder.rglob("cgroup.procs"):
            with suppress(OSError):
                found |= set(map(int, procs.read_text().split()))
    return [process for pid in sorted(found) if (process := procfs.find(pid)) is not None]


def until(what: str, true: Callable[[], bool], seconds: float = 15.0) -> float:
    """Wait until `true` is; the seconds that it took."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - begin


def busybox() -> str:
    """A store path without references: the pin of stage 0."""
    from sparkserve.pins import model

    return next(pin.path for pin in model.load("stage0").pins if pin.kind == "tree")
