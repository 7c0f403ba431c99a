"""What a service tells its systemd; nothing where there is none."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def ready() -> None:
    """`systemctl start` may return."""
    _send(b"READY=1")


def alive() -> None:
    """The event loop turns. A unit with WatchdogSec whose process stops saying so is killed."""
    _send(b"WATCHDOG=1")


def _send(message: bytes) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made, suppress(OSError):
            # Never waits: a systemd that is slow to read must not stop the streams.
            made.setblocking(False)
            made.connect(address.replace("@", "\0", 1))
            made.send(message)
