"""Connections to the engine: one exchange at a time each, kept for the next.

The engine's answers are parsed by httptools (llhttp, C), a client's requests by h11: the volume is on one
side, the strangers are on the other. docs/results/front.md has what that saves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from sparkserve.front.config import CONNECT_S, HEAD_BYTES, UPSTREAM_IDLE_S, Address
from sparkserve.front.headers import Fields, chunk

if TYPE_CHECKING:
    from sparkserve.front.exchange import Exchange

_ENDED = "it closed the connection"


class Upstream(asyncio.BufferedProtocol):
    """One connection. `exchange` is who uses it now. Its `on_...` methods are called by the parser."""

    transport: asyncio.Transport

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._parser = httptools.HttpResponseParser(self)
        self.exchange: Exchange | None = None
        self.blocked = False  # the engine takes nothing more for now
        self.idle_since = 0.0
        self._begin(head=False, chunked=False)

    # -- the request

    def _begin(self, *, head: bool, chunked: bool) -> None:
        self._is_head, self._chunked = head, chunked
        self._all_sent = self._all_received = self._in_body = False
        self._keep = self._until_close = False
        self._head_bytes = 0
        self._fields: Fields = []
        self._reason = b""

    def request(self, method: bytes, target: bytes, fields: Fields, *, chunked: bool) -> None:
        """Send a request's head; `chunked` says how its body will be sent."""
        self._begin(head=method == b"HEAD", chunked=chunked)
        lines = b"".join(b"%b: %b\r\n" % field for field in fields)
        self.transport.write(b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, lines))

    def send(self, data: bytes | None) -> None:
        """Send a part of its body; None is the end."""
        if data is None:
            self._all_sent = True
            if self._chunked:
                self.transport.write(b"0\r\n\r\n")
        elif data:
            self.transport.write(chunk(data) if self._chunked else data)

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # Shared by all: it is emptied before the loop turns. asyncio would make a buffer of 256 KiB for every
        # read, which costs 8 us of the 30 that a token costs here.
        return self._pool.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.exchange is None:  # words that nobody asked for; whoever comes next must not get them
            self.close()
            return
        if not self._in_body:
            self._head_bytes += nbytes
        failure = ""
        try:
            self._parser.feed_data(self._pool.buffer[:nbytes])
            if self._head_bytes > HEAD_BYTES and not self._in_body:
                failure = "its headers are too long"
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            failure = f"it spoke no HTTP ({type(error).__name__})"
        self._deliver(failure)

    def eof_received(self) -> None:
        if self.exchange is not None:
            if self._until_close and self._in_body:
                self._all_received = True
            self._deliver(_ENDED)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.forget(self)
        if self.exchange is not None:
            self.exchange.broken(_ENDED)

    def pause_writing(self) -> None:
        self._block(True)

    def resume_writing(self) -> None:
        self._block(False)

    def _block(self, blocked: bool) -> None:
        self.blocked = blocked
        if self.exchange is not None:
            self.exchange.client.update_reading()

    # -- the response

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        exchange, status = self.exchange, self._parser.get_status_code()
        if exchange is None or self._all_received or status == 101:
            raise ValueError("a second response, or a protocol that nobody asked for")
        fields, self._fields = self._fields, []
        reason, self._reason = self._reason, b""
        if status < 200:
            exchange.interim(status, fields)
            return
        names = {name for name, _ in fields}
        self._in_body = True
        self._keep = self._parser.should_keep_alive()
        self._until_close = status not in (204, 304) and not names & {b"content-length", b"transfer-encoding"}
        exchange.response(status, reason, fields)
        # llhttp does not know what was asked: it would wait for the body that a HEAD does not get.
        self._all_received = self._is_head

    def on_body(self, data: bytes) -> None:
        if self.exchange is not None and not self._all_received:
            self.exchange.data(data)

    def on_message_complete(self) -> None:
        self._all_received = self._all_received or self._in_body  # an interim response has no body
        self._fields = []  # of a trailer

    def _deliver(self, failure: str) -> None:
        """Let the exchange send on what was parsed; it may be over then."""
        exchange = self.exchange
        if exchange is None:
            return
        if self._all_received:
            exchange.flush(ended=True)
        else:
            exchange.flush(ended=False)
            if failure:
                exchange.broken(failure)

    def done(self) -> None:
        """The exchange has its whole response: keep the connection if that is surely safe."""
        self.exchange = None
        if self._keep and self._all_sent and not self._is_head and not self.transport.is_closing():
            self._pool.keep(self)
        else:
            self.close()

    def close(self) -> None:
        """At once, whatever is under way: the engine sees a client that has gone."""
        self.exchange = None
        self._pool.forget(self)
        self.transport.abort()


class Pool:
    """Kept connections, the last used first."""

    def __init__(self, engine: Address) -> None:
        self._engine = engine
        self._idle: list[Upstream] = []
        self.buffer = memoryview(bytearray(64 * 1024))

    def take(self) -> Upstream | None:
        """A kept connection, None when there is none that is surely still wanted by the engine."""
        self.sweep()
        while self._idle:
            upstream = self._idle.pop()
            if not upstream.transport.is_closing():
                return upstream
        return None

    async def connect(self) -> Upstream:
        """A new connection. Raises OSError, TimeoutError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S):
            _, upstream = await loop.create_connection(
                lambda: Upstream(self), self._engine.host, self._engine.port
            )
        return upstream

    def keep(self, upstream: Upstream) -> None:
        """Take back a connection after a whole exchange."""
        upstream.idle_since = asyncio.get_running_loop().time()
        upstream.transport.resume_reading()  # so that its end is noticed
        self._idle.append(upstream)

    def forget(self, upstream: Upstream) -> None:
        """It is closed."""
        if upstream in self._idle:
            self._idle.remove(upstream)

    def sweep(self, *, everything: bool = False) -> None:
        """Close what has been idle for too long."""
        too_old = asyncio.get_running_loop().time() - UPSTREAM_IDLE_S
        for upstream in [u for u in self._idle if everything or u.idle_since < too_old]:
            upstream.close()
