"""Is the public port free, and if not, who has it?"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

from sparkserve.errors import SparkserveError

_LISTEN = "0A"  # state column of /proc/net/tcp


def check(host: str, port: int) -> None:
    """Raise `HOST.PORT`, naming the process that has it if we may know, unless `host`:`port` is free."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        found = os.strerror(error.errno or 0)
        if error.errno == errno.EADDRINUSE:
            found = f"taken by {_owner(port) or 'a process of another user or container'}"
        raise SparkserveError(
            "HOST.PORT",
            expected="a free port for the endpoint",
            found=found,
            where=f"{host}:{port}",
            do="Stop that program, or set another serving.port in hosts/<fleet>/fleet.nix.",
        ) from None


def _owner(port: int) -> str | None:
    """Pid and program of the process that listens on `port`."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listeners(table, port)}
    for folder in Path("/proc").glob("[0-9]*"):
        # Of other users we may see nothing; processes may end while we look.
        with suppress(OSError):
            if any(str(fd.readlink()) in sockets for fd in (folder / "fd").iterdir()):
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"process {folder.name} ({' '.join(words).strip()[:120]})"
    return None


def _listeners(table: str, port: int) -> list[str]:
    """Inodes of the sockets that listen on `port` according to /proc/net/`table`."""
    found = []
    with suppress(OSError):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.append(fields[9])
    return found
