"""Who listens: any process can sit on an engine's port and answer in its place."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from sparkserve.engine.record import Run

_LISTEN = "0A"  # state column of /proc/net/tcp


def listeners(tcp: str, tcp6: str, host: str, port: int) -> set[str]:
    """Inodes of the sockets that get what connects to IPv4 `host`:`port`; texts as in /proc/net/tcp and tcp6.

    As in the kernel, a socket on the address itself goes before one on all addresses, and that before IPv6.
    """
    exact = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}"
    by_address: dict[str, set[str]] = {}
    for line in (tcp + tcp6).splitlines():
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            local, _, number = fields[1].rpartition(":")
            if int(number, 16) == port:
                by_address.setdefault(local, set()).add(fields[9])
    mapped = "0000000000000000FFFF0000"
    order = (exact, "0" * 8, mapped + exact, "0" * 32)
    return next((by_address[local] for local in order if local in by_address), set())


def owner(host: str, port: int) -> str:
    """Pid and program of the process that listens on `host`:`port`, in words."""
    return _named(_holders(_now(host, port)))


def listens(run: Run) -> bool:
    """Whether the engine of `run` listens on its endpoint. Raises `HOST.PORT` when another process does."""
    inodes = _now(run.host, run.port)
    if not inodes:
        return False
    holders = _holders(inodes)
    # After the look at the holders, which are in the tree by now if they are the engine's.
    own = procfs.tree(run.init.pid)
    others = [pid for pid in holders if pid not in own]
    if holders and not others:
        return True
    if _now(run.host, run.port) != inodes:
        return False  # closed meanwhile
    raise taken(run.host, run.port, _named(others))


def taken(host: str, port: int, found: str) -> SparkserveError:
    """The error for an endpoint that `found` has."""
    ours = "./sparkserve down ends one fleet (--fleet) of one checkout. " if "sparkserve" in found else ""
    return SparkserveError(
        "HOST.PORT",
        expected="a free port for the endpoint",
        found=f"taken by {found}",
        where=f"{host}:{port}",
        do=f"{ours}Stop that program, or set another serving.port in hosts/<fleet>/fleet.nix.",
    )


def _now(host: str, port: int) -> set[str]:
    tcp, tcp6 = procfs.PROC / "net/tcp", procfs.PROC / "net/tcp6"
    return listeners(tcp.read_text(), tcp6.read_text() if tcp6.exists() else "", host, port)


def _named(pids: list[int]) -> str:
    if not pids:
        return "a process of another user or container"
    return f"process {pids[0]} ({procfs.command_line(pids[0])[:120]})"


def _holders(inodes: set[str]) -> list[int]:
    """The processes that hold one of the sockets `inodes`, those that we may look into."""
    links = {f"socket:[{inode}]" for inode in inodes}
    found = []
    for pid in procfs.pids():
        folder = procfs.PROC / str(pid) / "fd"
        # Of other users we may see nothing; processes may end while we look.
        with suppress(OSError):
            for fd in folder.iterdir():
                with suppress(FileNotFoundError):  # closed while we look
                    if os.readlink(fd) in links:  # noqa: PTH115 - thousands
                        found.append(pid)
                        break
    return found
