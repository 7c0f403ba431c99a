"""The processes of a laptop fleet, found by where they are, never by a number that was written down."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.engine import procfs

if TYPE_CHECKING:
    from sparkserve.engine.procfs import Process


def of_netns(netns: Path) -> list[Process]:
    """Every process in the network namespace that `netns` names."""
    try:
        wanted = netns.stat()
    except OSError:
        return []
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, hundreds
        if entry.isdigit():
            with suppress(OSError):  # it may end while we look
                is_in = os.stat(f"/proc/{entry}/ns/net")  # noqa: PTH116 - the same, faster
                if (is_in.st_ino, is_in.st_dev) == (wanted.st_ino, wanted.st_dev):
                    found.append(procfs.find(int(entry)))
    return [process for process in found if process is not None]


def init_of(netns: Path) -> Process | None:
    """PID 1 of the node in `netns`: its systemd, or what becomes it."""
    for process in of_netns(netns):
        with suppress(OSError):
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                # As seen here and in its own namespace. One deeper would be a container inside the node.
                if line.startswith("NSpid:") and line.split()[2:] == ["1"]:
                    return process
    return None


def of_socket(path: Path) -> Process | None:
    """The process that listens on the unix socket `path`."""
    with socket.socket(socket.AF_UNIX) as end, suppress(OSError):
        end.settimeout(1)
        end.connect(str(path))
        pid, _, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return procfs.find(pid)
    return None
