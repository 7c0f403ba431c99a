"""What a laptop fleet has on the machine, and its removal: by names alone, so after any accident too."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.engine import procfs
from sparkserve.local import cgroups, disk, keeper, members, power, wiring
from sparkserve.local import names as naming

if TYPE_CHECKING:
    from sparkserve.engine.procfs import Process
    from sparkserve.local.names import Names
    from sparkserve.local.tools import Tools


def find(names: Names) -> list[str]:
    """One line for each namespace, link, cgroup, process, mount, loop device and runtime file there is."""
    found = [f"network namespace {name}" for name in wiring.namespaces(names)]
    if wiring.has_interface(names):
        found.append(f"interface {names.interface}")
    groups = cgroups.detect()
    found += [f"cgroup {folder}" for folder in groups.folders(names.group) if folder.exists()]
    pids = groups.pids(names.group)
    for netns in wiring.namespaces(names):
        pids |= {process.pid for process in members.of_netns(naming.NETNS / netns)}
    if (process := keeper.find(names)) is not None:
        pids.add(process.pid)
    pids |= {process.pid for process in _clients(names)}
    found += [f"process {pid}{_called(pid)}" for pid in sorted(pids)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    inside = f"{names.folder}/".replace(" ", "\\040")
    found += [f"mount {line.split()[4]}" for line in mounts if line.split()[4].startswith(inside)]
    found += [f"loop device {line}" for line in disk.loops(names.folder)]
    found += [f"folder {folder}" for folder in _folders(names)]
    if names.record.exists():
        found.append(f"record {names.record}")
    return found


def remove(names: Names, tools: Tools, *, clean_s: float) -> None:
    """Remove all of it, whatever state it is in. Nodes get `clean_s` seconds to stop by themselves.

    Raises `HOST.SYSTEM` when something stays.
    """
    groups = cgroups.detect()
    nodes = [name for name in wiring.namespaces(names) if name != names.wires]
    for node in nodes:
        groups.freeze(names.group, node.removeprefix(f"{names.group}-"), frozen=False)
    if nodes:
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda node: _end(node, clean_s), nodes))
    for process in _clients(names):
        process.send(signal.SIGKILL)
    for netns in (*nodes, names.wires):
        power.kill(netns, lambda: groups.pids(names.group))
    wiring.take_down(names, tools)
    groups.remove(names.group)
    for image in names.folder.glob("*/disk.img"):
        disk.wait_released(naming.NodeFiles(image.parent))
    for folder in _folders(names):
        shutil.rmtree(folder, ignore_errors=True)
    names.record.unlink(missing_ok=True)


def _end(netns: str, clean_s: float) -> None:
    process = members.init_of(naming.NETNS / netns)
    if process is not None and clean_s > 0:
        process.send(power.POWER_OFF)
        process.wait(clean_s)


def _folders(names: Names) -> list[Path]:
    """The runtime folders that there are."""
    connections = names.connections
    found = [names.run, *sorted(connections.parent.glob(f"{connections.name}-*"))]
    return [folder for folder in found if folder.exists()]


def _clients(names: Names) -> list[Process]:
    """The processes on the machine that speak to nodes: shared ssh connections, and an ssh or a copy by Nix
    that outlives a command that was killed."""
    sockets = [path for folder in _folders(names) for path in sorted(folder.glob("*")) if path.is_socket()]
    found = {process for path in sockets if (process := members.of_socket(path)) is not None}
    marks = [os.fsencode(f"{names.run}/"), os.fsencode(f"{names.connections}-")]
    for pid in procfs.pids():
        stat = procfs.look(pid)
        if stat is None or stat.name not in ("ssh", "nix"):
            continue
        with suppress(OSError):
            words = b"".join(Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ"))
            if any(mark in words for mark in marks):
                found.add(procfs.Process(pid, stat.start))
    return sorted(found, key=lambda process: process.pid)


def _called(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return f" ({' '.join(words).strip()[:120]})"
