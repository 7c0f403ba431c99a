"""A laptop fleet of a test's own: another name, other addresses, nothing shared with the user's."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan

ROOT = Path(__file__).parents[3]


def plans(name: str, network: str, pid: int | None = None) -> list[Plan]:
    """The golden plans of local-triangle under another name, in the management network `network`.0/24."""
    pid = os.getpid() if pid is None else pid
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = []
    for file in sorted((ROOT / "tests/golden/local-triangle").glob("*.json")):
        value = json.loads(file.read_text().replace("10.77.0.", f"{network}."))
        value["fleet"]["name"] = f"{name}-{pid}"
        value["serving"]["port"] = port
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


def until(what: str, true: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait until `true` is."""
    import time

    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)


def busybox() -> str:
    """A store path without references: the pin of stage 0."""
    from sparkserve.pins import model

    return next(pin.path for pin in model.load("stage0").pins if pin.kind == "tree")
