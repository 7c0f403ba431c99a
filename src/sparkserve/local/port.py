"""Is the public port free, and if not, who has it?"""

from __future__ import annotations

import errno
import os
import socket

from sparkserve.engine import sockets
from sparkserve.errors import SparkserveError


def check(host: str, port: int) -> None:
    """Raise `HOST.PORT`, naming the process that has it if we may know, unless `host`:`port` is free."""
    try:
        # Bound, never listening: that would take the port from an engine that starts at this moment.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise sockets.taken(host, port, sockets.owner(host, port)) from None
        raise SparkserveError(
            "HOST.PORT",
            expected="an endpoint that this machine can have",
            found=os.strerror(error.errno or 0),
            where=f"{host}:{port}",
            do="Set another serving.host or serving.port in hosts/<fleet>/fleet.nix.",
        ) from None
