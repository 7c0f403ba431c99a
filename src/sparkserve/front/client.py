"""A client's connection: requests in, answers out, and the limits on how long and how much."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import h11

from sparkserve.front import answers
from sparkserve.front.config import (
    BODY_S,
    CONNECTIONS,
    DISCARD_BYTES,
    HEAD_BYTES,
    HEAD_S,
    IDLE_S,
    PIPELINED_BYTES,
    STALL_S,
)
from sparkserve.front.exchange import Exchange

if TYPE_CHECKING:
    from sparkserve.front.answers import Answer
    from sparkserve.front.server import Front


class Client(asyncio.Protocol):
    """One connection. h11 keeps the state of HTTP; `_exchange` is the request that is with the engine."""

    transport: asyncio.Transport

    def __init__(self, front: Front) -> None:
        self._front = front
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._exchange: Exchange | None = None
        self._pumping = False
        self._queued = 0  # bytes that came behind a request that is not answered yet
        self._discarded = 0  # bytes of a body that nobody wants any more
        self._waiting, self._since = IDLE_S, 0.0  # for the client's next bytes: how long at most, since when
        self._stalled_since: float | None = None
        self._linger = False
        self._is_head = False
        self.peer = ""

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        self._since = self._front.now()
        self._front.clients.add(self)
        if len(self._front.clients) > CONNECTIONS:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._front.clients.discard(self)
        if self._exchange is not None:
            self._exchange.cancel()

    def eof_received(self) -> None:
        # A client that only shuts down its sending side cannot be told from one that has gone, and the latter
        # is what happens: an agent that was stopped must not keep its place in the batch.
        if self._exchange is not None:
            self._exchange.cancel()

    def pause_writing(self) -> None:
        self._stalled_since = self._front.now()
        if self._exchange is not None:
            self._exchange.hold(True)

    def resume_writing(self) -> None:
        self._stalled_since = None
        if self._exchange is not None:
            self._exchange.hold(False)

    def check(self, now: float) -> None:
        """Close when the client lets us wait for too long. Called about once a second."""
        stalled = self._stalled_since is not None and now - self._stalled_since > STALL_S
        waits = self._exchange is None or self._http.their_state is h11.SEND_BODY
        if stalled or (waits and now - self._since > self._waiting and not self._is_held()):
            self.transport.abort()

    # -- from the client

    def data_received(self, data: bytes) -> None:
        if self._linger:
            return
        match self._http.their_state:
            case h11.SEND_BODY:
                self._since = self._front.now()
            case h11.IDLE:
                if not self._http.trailing_data[0]:
                    data = data.lstrip(b"\r\n")
                # A request begins: its head must be here soon, however it drips.
                if data and self._waiting == IDLE_S:
                    self._waiting, self._since = HEAD_S, self._front.now()
            case _:
                self._queued += len(data)
        if data:  # nothing would mean the end of the connection
            self._http.receive_data(data)
            self._pump()

    def _pump(self) -> None:
        """Take every event that is there, also of the requests behind the first."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self.transport.is_closing() and not self._linger:
                if self._http.their_state is h11.MUST_CLOSE:
                    break  # what comes behind a last request, an empty line of an old client say, is nothing
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED or type(event) is h11.ConnectionClosed:
                    break
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._refuse_nonsense(error)
        finally:
            self._pumping = False
        if not self.transport.is_closing():
            self.update_reading()

    def _take(self, event: Any) -> None:
        if type(event) is h11.Request:
            self._waiting = BODY_S
            self._since = self._front.now()
            self._begin(event)
        elif self._exchange is not None:
            self._exchange.send(bytes(event.data) if type(event) is h11.Data else None)
        elif type(event) is h11.Data:
            self._discarded += len(event.data)
            if self._discarded > DISCARD_BYTES:
                self.transport.abort()
        else:
            self._next()

    def _begin(self, request: h11.Request) -> None:
        if sum(len(name) + len(value) for name, value in request.headers) + len(request.target) > HEAD_BYTES:
            raise h11.RemoteProtocolError("headers too large", error_status_hint=431)
        self._is_head = request.method == b"HEAD"
        path = answers.route(request.target)
        own = self._front.own_answer(request, path, self.peer)
        if own is not None:
            self.answer(own)
        else:
            self._exchange = Exchange(self._front, self, request, path)

    def _refuse_nonsense(self, error: h11.RemoteProtocolError) -> None:
        # h11 quotes the line, which may be one with a key.
        why = f"Not HTTP: {re.split(r':? b(?:ytearray|[^a-z])', str(error), maxsplit=1)[0]}."
        if self._exchange is not None:
            self._exchange.fail(error.error_status_hint, "bad_request", why)
        elif self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._is_head = False
            self._front.counts["bad_request"] += 1
            self.answer(answers.error(error.error_status_hint, "bad_request", why, ""))
        else:
            self.transport.abort()

    def _is_held(self) -> bool:
        """Whether it is we who do not read the body."""
        return self._exchange is not None and self._exchange.blocked

    def update_reading(self) -> None:
        """Read on, unless what we read would have nowhere to go. Reading is also how we notice an end."""
        body = self._http.their_state is h11.SEND_BODY
        pause = self._queued > PIPELINED_BYTES or (body and self._is_held())
        (self.transport.pause_reading if pause else self.transport.resume_reading)()

    # -- to the client

    @property
    def stalled(self) -> bool:
        """Whether the client does not take what it was sent."""
        return self._stalled_since is not None

    @property
    def knows_1xx(self) -> bool:
        """HTTP/1.0 knows no interim response."""
        return self._http.their_http_version != b"1.0"

    def encode(self, event: h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage) -> bytes:
        """The bytes of an event of the response."""
        return self._http.send(event) or b""

    def write(self, data: bytes) -> None:
        """Send bytes that `encode` made."""
        if data:
            self.transport.write(data)

    def answer(self, answer: Answer) -> None:
        """Send a whole response of our own."""
        headers = answer.headers
        # After words that made no sense to us, nothing that follows can be trusted to begin a request.
        if (
            400 <= answer.status < 500
            or self._front.stopping
            or self._http.their_state is h11.ERROR
            or self._http.they_are_waiting_for_100_continue
        ):
            headers.append((b"connection", b"close"))
        reason = HTTPStatus(answer.status).phrase.encode()
        out = [self.encode(h11.Response(status_code=answer.status, headers=headers, reason=reason))]
        # HEAD gets the length of the body, but not the body.
        if not self._is_head:
            out.append(self.encode(h11.Data(data=answer.body)))
        self.write(b"".join([*out, self.encode(h11.EndOfMessage())]))
        if self._exchange is None:
            self._next()

    def cut(self, last: bytes) -> None:
        """End a response in its middle, visibly: without the end that HTTP wants to see."""
        if last:
            self.write(self.encode(h11.Data(data=last)))
        if self._http.their_http_version == b"1.0" and not last:
            self.transport.abort()  # there a close is the end; a reset is not
        else:
            self.transport.close()

    def ended(self) -> None:
        """The exchange is over, its response is written."""
        self._exchange = None
        self._next()

    def _next(self) -> None:
        """After a response: wait for the rest of the request, close, or begin the next cycle."""
        if self.transport.is_closing() or self._http.our_state not in (h11.DONE, h11.MUST_CLOSE, h11.ERROR):
            return
        if self._http.our_state is h11.DONE and self._http.their_state is h11.SEND_BODY:
            return  # the body that still comes is thrown away, then `_take` calls us again
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._close()
            return
        behind = self._http.trailing_data[0]
        if behind[:1] == b"\r":  # an empty line behind a body, which RFC 9112 2.2 lets pass and h11 does not
            self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
            behind = behind.lstrip(b"\r\n")
            if behind:  # nothing would mean the end of the connection
                self._http.receive_data(behind)
        else:
            self._http.start_next_cycle()
        self._queued, self._discarded = len(behind), 0
        self._waiting, self._since = IDLE_S, self._front.now()
        if self._front.stopping:
            self._close()
        else:
            self._pump()

    def _close(self) -> None:
        """Close after the client had time to read: closing with unread bytes would reset the connection."""
        if self._linger:
            return
        self._linger = True
        self.transport.write_eof()
        asyncio.get_running_loop().call_later(1.0, self.transport.abort)

    def stop(self) -> None:
        """The front stops: close unless a request is on its way."""
        if self._exchange is None:
            self.transport.close()
