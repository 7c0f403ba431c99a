"""One TCP connection that carries messages.

Here and around: asyncio.timeout, not wait_for, which in Python 3.11 loses a cancellation that comes as its
inner call ends (seen: a supervisor that could not be stopped).
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from sparkserve.group.protocol import Message, ProtocolError, decode, encode
from sparkserve.group.wire import LINE_BYTES

SEND_S = 5.0  # a peer that takes nothing for so long is lost


class Channel:
    """Sends and receives messages. Not more than one receiver at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        raw: socket.socket = writer.get_extra_info("socket")
        # The kernel tells of a peer that lost its power also when only we wait for it to speak.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_S * 1000))

    @property
    def peer(self) -> str:
        """The address at the other end."""
        return str(self._writer.get_extra_info("peername")[0])

    async def send(self, message: Message) -> None:
        """Send `message`. Raises OSError or TimeoutError when the peer is lost."""
        async with self._sending:
            self._writer.write(encode(message))
            async with asyncio.timeout(SEND_S):
                await self._writer.drain()

    async def receive(self, seconds: float | None = None) -> Message | None:
        """The next message, None at the end.

        Raises `ProtocolError`, OSError, or TimeoutError after `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                line = await self._reader.readline()
        except ValueError:  # asyncio's word for a line over the limit
            raise ProtocolError(f"a line of more than {LINE_BYTES} bytes") from None
        return decode(line) if line.endswith(b"\n") else None

    async def close(self) -> None:
        """Close it; what the peer still sends is lost."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()


async def connect(host: str, port: int, seconds: float, source: str | None = None) -> Channel:
    """A channel to `host`:`port`, from the address `source`. Raises OSError or TimeoutError."""
    local = None if source is None else (source, 0)
    async with asyncio.timeout(seconds):
        return Channel(*await asyncio.open_connection(host, port, limit=LINE_BYTES, local_addr=local))
