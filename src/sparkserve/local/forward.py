"""Passes bytes between a port of this machine and a port of a node, in both directions.

The node's port is on its loopback, as the endpoint has no credentials yet: it is reached from inside.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CLONE_NEWNET = 0x40000000
_CHUNK = 64 << 10
_CONNECT_S = 5.0


async def listen(
    host: str, port: int, to_host: str, to_port: int, netns: Path | None = None
) -> asyncio.Server:
    """Forward every connection to `host`:`port` to `to_host`:`to_port`, in the network namespace `netns`.

    A connection that the node does not take is closed at once, so a client sees an end and not a silence.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_S):
                far = await asyncio.to_thread(_socket, netns)
                far.setblocking(False)
                try:
                    await asyncio.get_running_loop().sock_connect(far, (to_host, to_port))
                except BaseException:
                    far.close()
                    raise
                far_reader, far_writer = await asyncio.open_connection(sock=far)
        except OSError:  # a timeout is one too
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer))
                both.create_task(_pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            # abort: whatever has not gone by now has nobody to go to.
            writer.transport.abort()
            far_writer.transport.abort()

    return await asyncio.start_server(connected, host, port)


def _socket(netns: Path | None) -> socket.socket:
    """A TCP socket that lives in `netns`, this process's own when it is None. Raises OSError."""
    if netns is None:
        return socket.socket()

    def make() -> socket.socket:
        fd = os.open(netns, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {netns}")
            return socket.socket()
        finally:
            os.close(fd)

    # A thread of its own, which ends: it stays in the namespace that it entered.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the end, and the end itself: the other direction may go on."""
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()
