"""The power switch of a node: on, off, and the ways in which power goes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.local import boot, disk, members, network, wiring
from sparkserve.local import names as naming
from sparkserve.local.cgroups import BESIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.engine.procfs import Process
    from sparkserve.local.record import Fleet

# systemd takes these real-time signals as orders (see its manual).
POWER_OFF = signal.SIGRTMIN + 4
_SHUTDOWN_S = 20.0
_KILL_S = 10.0


def init(fleet: Fleet, node: str) -> Process | None:
    """PID 1 of a node as a process of this machine; None when the node is off."""
    return members.init_of(naming.NETNS / fleet.names.netns(node))


def on(fleet: Fleet, node: str) -> bool:
    """Power a node on; False when it was on. It answers a moment later: see `wait`. Raises `HOST.*`."""
    files = fleet.names.node(node)
    files.folder.mkdir(parents=True, exist_ok=True)
    files.switch.touch()
    if init(fleet, node) is not None:
        return False
    clear(fleet, node)
    plan = fleet.plan(node)
    fleet.cgroups.make(fleet.names.group, node, fleet.sizes.memory_mib)
    disk.make(files, fleet.sizes.disk_gib, fleet.tools)
    wiring.plug(fleet, plan)
    files.ended.write_text("")
    start = {
        "cgroups": [str(folder) for folder in fleet.cgroups.folders(f"{fleet.names.group}/{node}")],
        "steps": boot.steps(
            fleet.names, fleet.plans, plan, fleet.root, fleet.sizes, fleet.cgroups, str(uuid.uuid4())
        ),
        "init": boot.INIT,
        "environment": boot.ENVIRONMENT,
    }
    files.start.write_text(json.dumps(start, indent=1))
    inner = [sys.executable, "-I", "-S", str(Path(__file__).with_name("inner.py")), str(files.start)]
    uptime = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    with files.log.open("wb") as log:
        starter = subprocess.Popen(
            boot.outer(fleet.names, node, uptime, inner),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            env=fleet.tools.environment(),
        )
    # Out of the caller's cgroup, which may end with the caller's session.
    fleet.cgroups.join(fleet.names.group, BESIDE, starter.pid)
    _started(fleet, node, starter)
    return True


def off(fleet: Fleet, node: str, *, clean: bool = True) -> None:
    """Power a node off and keep its disk. `clean`: its systemd stops everything first, at most 20 s."""
    fleet.names.node(node).switch.unlink(missing_ok=True)
    stop(fleet, node, clean_s=_SHUTDOWN_S if clean else 0.0)


def cut(fleet: Fleet, node: str) -> None:
    """Cut a node's power: what it had not synced to its disk is lost."""
    fleet.names.node(node).switch.unlink(missing_ok=True)
    process = init(fleet, node)
    if process is not None:
        with suppress(OSError):  # it has just ended by itself
            disk.lose_unsynced(process.pid)
    stop(fleet, node, clean_s=0.0)


def stop(fleet: Fleet, node: str, *, clean_s: float) -> None:
    """End a node, by its systemd within `clean_s` seconds, else by force. Leaves the switch as it is."""
    fleet.cgroups.freeze(fleet.names.group, node, frozen=False)  # a frozen process does not even die
    process = init(fleet, node)
    if process is not None and clean_s > 0:
        process.send(POWER_OFF)
        process.wait(clean_s)
    clear(fleet, node)


def clear(fleet: Fleet, node: str) -> None:
    """Remove what is left of a node that should not run. Raises `HOST.SYSTEM`."""
    names, group = fleet.names, f"{fleet.names.group}/{node}"
    kill(names.netns(node), lambda: fleet.cgroups.pids(group))
    _drop_connection(fleet, node)
    wiring.unplug(fleet, fleet.plan(node))
    fleet.cgroups.remove(group)
    disk.wait_released(names.node(node))


def kill(netns: str, others: Callable[[], set[int]]) -> None:
    """Kill every process in a network namespace, and `others`; PID 1 first: the kernel ends the rest with it.

    Raises `HOST.SYSTEM` when one of them does not die.
    """
    first = members.init_of(naming.NETNS / netns)
    if first is not None:
        first.send(signal.SIGKILL)
        first.wait(_KILL_S)
    deadline = time.monotonic() + _KILL_S
    # Again until nothing is found: a starter may have made another process meanwhile.
    while left := _living(netns, others()):
        for process in left:
            process.send(signal.SIGKILL)
        for process in left:
            process.wait(0.5)
        if time.monotonic() > deadline:
            raise SparkserveError(
                "HOST.SYSTEM",
                expected=f"every process to be gone {_KILL_S:.0f} s after SIGKILL",
                found=f"the processes {', '.join(str(process.pid) for process in left)}",
                where=netns,
                do="They hang in the kernel; run ./sparkserve down again.",
            )


def _living(netns: str, pids: set[int]) -> list[Process]:
    found = [*members.of_netns(naming.NETNS / netns), *map(procfs.find, sorted(pids))]
    return [process for process in found if process and process.pid != os.getpid() and process.alive()]


def wait(fleet: Fleet, node: str, timeout_s: float = 30.0) -> None:
    """Wait until a node's sshd answers. Raises `HOST.SYSTEM` when the node ends or does not answer."""
    deadline = time.monotonic() + timeout_s
    process = init(fleet, node)
    while process is not None and process.alive() and time.monotonic() < deadline:
        if answers(fleet, node):
            return
        time.sleep(0.02)
    running = process is not None and process.alive()
    raise _failed(fleet, node, "a node without an answer" if running else "a node that ended")


def answers(fleet: Fleet, node: str) -> bool:
    """Whether a node's sshd answers within a second."""
    address = str(network.fabric(fleet.plan(node)).management.address)
    with suppress(OSError), socket.create_connection((address, 22), timeout=1) as connection:
        return connection.recv(4) == b"SSH-"
    return False


def _started(fleet: Fleet, node: str, starter: subprocess.Popen[bytes]) -> None:
    """Return once PID 1 of the node is there."""
    while starter.poll() is None:
        if init(fleet, node) is not None:
            return
        time.sleep(0.005)
    raise _failed(fleet, node, f"its start ended with {starter.returncode}")


def _failed(fleet: Fleet, node: str, found: str) -> SparkserveError:
    log = fleet.names.node(node).log
    said = log.read_text(errors="replace").strip()[-800:]
    return SparkserveError(
        "HOST.SYSTEM",
        expected=f"{node} to start and answer on its ssh port",
        found=f"{found}: {said}" if said else found,
        where=str(log),
        do="The message names what this kernel or container does not allow.",
    )


def _drop_connection(fleet: Fleet, node: str) -> None:
    """End the shared ssh connection to a node that is off; commands would wait for it."""
    path = fleet.names.run / node
    master = members.of_socket(path)
    if master is not None:
        master.send(signal.SIGKILL)
        master.wait(_KILL_S)
    path.unlink(missing_ok=True)
