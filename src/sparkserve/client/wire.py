"""Connections of the client: HTTP/1.1, one exchange at a time each, kept for the next.

A read only stamps and copies. Parsing waits in a backlog, of which each turn of the loop takes a little: when
64 streams bring a token at once, the last is stamped when its bytes are read, not when 63 others are parsed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol, cast

import httptools

KEPT_S = 2.0  # uvicorn closes kept connections after 5 s
BODY_BYTES = 64 * 1024 * 1024  # of one answer
HEAD_BYTES = 64 * 1024


class Receiver(Protocol):
    """Who gets an answer, piece by piece. `at` is when its bytes were read, on the monotonic clock."""

    def sent(self, at: float) -> None:
        """The request goes out now. Called again when it must go out once more."""

    def head(self, status: int, content_type: str, at: float) -> None:
        """Status and type."""

    def data(self, data: bytes, at: float) -> None:
        """A part of the body."""


class Backlog:
    """What was read and not yet parsed."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(64 * 1024))  # shared: emptied before the loop turns
        self._waiting: deque[tuple[Connection, float, bytes]] = deque()
        self._scheduled = False
        self._loop = asyncio.get_running_loop()

    def add(self, connection: Connection, data: bytes) -> None:
        """No data is the end of the connection."""
        self._waiting.append((connection, time.monotonic(), data))
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._scheduled = False
        for _ in range(1 + len(self._waiting) // 16):  # more when it grows, or a flood would fill the memory
            connection, at, data = self._waiting.popleft()
            connection.parse(data, at)
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)


class Connection(asyncio.BufferedProtocol):
    """One connection. Its `on_...` methods are called by the parser."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiver | None = None
        self._ended: asyncio.Future[None] | None = None
        self._at = self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._received = self._body_bytes = 0
        self._content_type = ""
        self._framed = self._in_body = self._complete = self._keep = False

    async def exchange(self, request: bytes, receiver: Receiver) -> None:
        """Send a request and receive its whole answer.

        Raises ConnectionError; LateError on a kept connection that turns out to be closed. Cancelled, it
        closes the connection: the engine sees a client that has gone.
        """
        used, self._receiver = self._received > 0, receiver
        self._begin()
        self._ended = asyncio.get_running_loop().create_future()
        try:
            receiver.sent(time.monotonic())
            self._transport.write(request)
            await self._ended
        except ConnectionError as error:
            if used and not self._received:
                raise LateError(str(error)) from error
            raise
        finally:
            self._receiver = self._ended = None
            if not self.reusable:
                self.close()

    @property
    def reusable(self) -> bool:
        """Whether the next exchange may use it."""
        unsent = self._transport.get_write_buffer_size()  # it answered before it had the whole request
        return self._complete and self._keep and not unsent and not self._transport.is_closing()

    def close(self) -> None:
        """At once, whatever is under way."""
        self._transport.abort()

    # -- of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._backlog.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._backlog.add(self, bytes(self._backlog.buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        self._backlog.add(self, b"")

    # -- of the backlog

    def parse(self, data: bytes, at: float) -> None:
        """Take what was read `at`."""
        if self._ended is None or self._ended.done():  # words that nobody asked for
            self.close()
            return
        self._at = at
        self._received += len(data)
        failure = "" if data else "it closed the connection before the answer was whole"
        if not data and self._in_body and not self._framed:
            self._complete = True
        try:
            if data:
                self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            failure = f"it spoke no HTTP ({type(error).__name__})"
        if not self._in_body and self._received > HEAD_BYTES:
            failure = failure or f"its headers are longer than {HEAD_BYTES} bytes"
        self._keep = self._keep and not failure
        if self._body_bytes > BODY_BYTES:
            failure = f"its body is longer than {BODY_BYTES // 2**20} MiB"
        elif self._complete:
            self._ended.set_result(None)
            return
        if failure:
            self._ended.set_exception(ConnectionError(failure))

    # -- of the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == b"content-type":
            self._content_type = value.decode("latin-1").lower()
        self._framed = self._framed or lower in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._complete or self._receiver is None or status == 101:
            raise ValueError("a second answer, or a protocol that nobody asked for")
        if status < 200:  # an interim answer; the real one follows
            self._framed = False
            return
        self._framed = self._framed or status in (204, 304)
        self._keep, self._in_body = self._parser.should_keep_alive(), True
        self._receiver.head(status, self._content_type, self._at)

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._receiver is not None and self._body_bytes <= BODY_BYTES:
            self._receiver.data(data, self._at)

    def on_message_complete(self) -> None:
        self._complete = self._complete or self._in_body  # an interim answer has no body


class LateError(ConnectionError):
    """A kept connection was closed before it took the request: nothing was asked."""


class Pool:
    """Kept connections to one address, the last used first."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._idle: list[Connection] = []
        self._backlog: Backlog | None = None

    async def exchange(self, request: bytes, receiver: Receiver) -> None:
        """On a kept connection or a new one. Raises OSError."""
        connection = self._take()
        if connection is not None:
            try:
                await self._run(connection, request, receiver)
                return
            except LateError:
                pass
        await self._run(await self._connect(), request, receiver)

    async def _run(self, connection: Connection, request: bytes, receiver: Receiver) -> None:
        await connection.exchange(request, receiver)
        if connection.reusable:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)

    def _take(self) -> Connection | None:
        too_old = time.monotonic() - KEPT_S
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and connection.idle_since >= too_old:
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        backlog = self._backlog = self._backlog or Backlog()
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: Connection(backlog), *self._address))[1]

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop().close()
