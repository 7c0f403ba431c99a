"""One request on its way through: to the engine, and its answer back as it comes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import h11

from sparkserve.front import answers
from sparkserve.front.headers import Fields, chunk, pass_on
from sparkserve.front.model import CHECKED_BYTES

if TYPE_CHECKING:
    from sparkserve.front.client import Client
    from sparkserve.front.server import Front
    from sparkserve.front.upstream import Upstream


class Exchange:
    """Between one client and one connection to the engine. Ends once, by `_end`.

    What comes from the engine is collected (`response`, `data`) and sent by `flush`, in one write.
    """

    def __init__(self, front: Front, client: Client, request: h11.Request, path: str) -> None:
        self.client = client
        self.path = path
        self.status = 0  # of the response, 0 before there is one
        self._front = front
        self._request = request
        self._body: list[bytes | None] = []  # that waits for a connection
        names_a_model = request.method == b"POST" and path.startswith("/v1/")
        self._unchecked: list[bytes] | None = [] if names_a_model else None
        self._upstream: Upstream | None = None
        self._out: list[bytes] = []
        self._stream = self._generates = self._chunked = self._ended = False
        self._begun = front.now()
        self._first: float | None = None
        self._bytes_in = self._bytes_out = 0
        front.exchanges.add(self)
        upstream = front.pool.take()
        if upstream is not None:
            self._attach(upstream)
        else:
            self._task = asyncio.get_running_loop().create_task(self._connect())

    # -- to the engine

    async def _connect(self) -> None:
        try:
            upstream = await self._front.pool.connect()
        except (OSError, TimeoutError) as error:
            reason = os.strerror(error.errno) if error.errno else str(error) or "timeout"
            self.fail(503, "engine_unreachable", f"The engine takes no connection: {reason}.")
            return
        if self._ended:
            upstream.close()
        else:
            self._attach(upstream)
            self.client.update_reading()

    def _attach(self, upstream: Upstream) -> None:
        self._upstream = upstream
        upstream.exchange = self
        fields, chunked = pass_on(self._request.headers)
        if chunked:
            fields.append((b"transfer-encoding", b"chunked"))
        if not any(name == b"host" for name, _ in fields):  # HTTP/1.0 needs none, 1.1 does
            fields.append((b"host", str(self._front.config.engine).encode()))
        upstream.request(self._request.method, self._request.target, fields, chunked=chunked)
        for data in self._body:
            upstream.send(data)
        self._body = []
        if self.client.stalled:  # by the answer before this one
            self.hold(True)

    @property
    def blocked(self) -> bool:
        """Whether more of the request's body would have nowhere to go."""
        return self._upstream is None or self._upstream.blocked

    def send(self, data: bytes | None) -> None:
        """Pass on a part of the request's body; None is its end.

        One that may name a model is held back until it is whole: the name often comes last.
        """
        self._bytes_in += len(data or b"")
        if self._unchecked is not None:
            if data is not None and self._bytes_in <= CHECKED_BYTES:
                self._unchecked.append(data)
                return
            held, self._unchecked = self._unchecked, None
            model = self._front.model
            if data is None and not self.status and (other := model.other(b"".join(held))) is not None:
                text = f"The model `{other[:200]}` does not exist here: this endpoint serves `{model.name}`."
                self.fail(404, "model_not_found", text)
                return
            for part in held:
                self._pass_on(part)
        self._pass_on(data)

    def _pass_on(self, data: bytes | None) -> None:
        if self._upstream is None:
            self._body.append(data)
        else:
            self._upstream.send(data)

    def hold(self, held: bool) -> None:
        """The client takes nothing more for now, or takes more again."""
        if self._upstream is not None:
            transport = self._upstream.transport
            (transport.pause_reading if held else transport.resume_reading)()

    # -- from the engine

    def interim(self, status: int, fields: Fields) -> None:
        """A 100 Continue or the like, for clients that know such."""
        if self.client.knows_1xx:
            event = h11.InformationalResponse(status_code=status, headers=pass_on(fields)[0])
            self._out.append(self.client.encode(event))

    def response(self, status: int, reason: bytes, fields: Fields) -> None:
        """The response's head."""
        self.status = status
        fields, _ = pass_on(fields)
        kind = next((value for name, value in fields if name == b"content-type"), b"")
        self._stream = kind.startswith(b"text/event-stream")
        self._generates = status == 200 and self.path in answers.GENERATES
        if self._front.stopping:
            fields.append((b"connection", b"close"))
        sized = any(name == b"content-length" for name, _ in fields)
        bodiless = status in (204, 304) or self._request.method == b"HEAD"
        self._chunked = not sized and not bodiless and self.client.knows_1xx
        if self._chunked:
            fields.append((b"transfer-encoding", b"chunked"))
        self._out.append(self.client.encode(h11.Response(status_code=status, headers=fields, reason=reason)))

    def data(self, data: bytes) -> None:
        """A piece of the body."""
        if self._first is None:
            self._first = self._front.now()
        self._bytes_out += len(data)
        if self._stream and self._generates and answers.proves_token(data):
            self._front.health.token()
        # h11 would do the same in five times the time; it keeps no count of a chunked body.
        self._out.append(chunk(data) if self._chunked else self.client.encode(h11.Data(data=data)))

    def flush(self, *, ended: bool) -> None:
        """Send what came; `ended` says that it is all."""
        if ended:
            self._out.append(self.client.encode(h11.EndOfMessage()))
        if self._out:
            self.client.write(b"".join(self._out))
            self._out = []
        if ended and self._upstream is not None:
            if self._generates and not self._stream:
                self._front.health.token()
            self._upstream.done()
            self._end("ok")

    # -- ends

    def broken(self, reason: str) -> None:
        """The engine's side ended in the middle."""
        self.fail(502, "engine_lost", f"The engine broke off this request: {reason}.")

    def fail(self, status: int, code: str, message: str) -> None:
        """End it from our side, so that no client takes what it has for the whole answer."""
        if self._ended:
            return
        self._leave_engine()
        if not self.status:
            self.status = status
            retry = 10 if status == 503 else None
            self.client.answer(answers.error(status, code, message, self.path, retry))
        elif self._stream:
            # The event tells a client of the API; the missing end of the chunked body tells every other one.
            self.client.cut(answers.error_event(status, code, message, self.path))
        else:
            self.client.cut(b"")
        self._end(code)

    def cancel(self) -> None:
        """The client has gone: so must the work."""
        if not self._ended:
            self._leave_engine()
            self._end("client_gone")

    def _leave_engine(self) -> None:
        if self._upstream is not None:
            self._upstream.close()

    def _end(self, how: str) -> None:
        self._ended = True
        self._upstream = None
        self._front.exchanges.discard(self)
        self._front.ended(
            client=self.client.peer,
            method=self._request.method.decode(),
            path=self.path,
            status=self.status,
            end=how,
            ms=round((self._front.now() - self._begun) * 1e3, 1),
            first_ms=None if self._first is None else round((self._first - self._begun) * 1e3, 1),
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
        )
        self.client.ended()
