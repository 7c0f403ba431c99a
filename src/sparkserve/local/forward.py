"""Passes bytes between a port of this machine and a port of a node, in both directions."""

from __future__ import annotations

import asyncio
from contextlib import suppress

_CHUNK = 64 << 10
_CONNECT_S = 5.0


async def listen(host: str, port: int, to_host: str, to_port: int) -> asyncio.Server:
    """Forward every connection to `host`:`port` to `to_host`:`to_port`.

    A connection that the node does not take is closed at once, so a client sees an end and not a silence.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_S):
                far_reader, far_writer = await asyncio.open_connection(to_host, to_port)
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


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the end, and the end itself: the other direction may go on."""
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()
