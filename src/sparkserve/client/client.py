"""The client: requests to one endpoint, many at once."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from sparkserve import api_key
from sparkserve.client.answer import Answer
from sparkserve.client.reply import Reply
from sparkserve.client.sse import Events
from sparkserve.client.wire import Pool

if TYPE_CHECKING:
    from pathlib import Path

# Asked for with each stream: tokens counted by the engine, with every event (SGLang 0.5.23 has both).
STREAM_OPTIONS = {"include_usage": True, "continuous_usage_stats": True}


class Client:
    """Requests to `endpoint`, such as http://127.0.0.1:8888, up to `streams` at once; more wait.

    They show the first key of `key_file`. Raises ValueError for an endpoint that is not http://HOST:PORT, and
    `KEY.FILE`. The environment's proxies are not used.
    """

    def __init__(self, endpoint: str, *, streams: int = 64, key_file: Path | None = None) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme != "http" or not parts.hostname or parts.username or parts.path.strip("/"):
            # Not the user and password that may be in it.
            raise ValueError(f"{endpoint.rpartition('@')[2]!r} is not http://HOST:PORT")
        self.endpoint = f"http://{parts.netloc}"
        fields = {"Host": parts.netloc, "Accept": "*/*", **api_key.headers(key_file)}
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._pool = Pool(parts.hostname, parts.port or 80)
        self._slots = asyncio.Semaphore(streams)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.close()

    async def ask(self, path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Reply:
        """POST `body`, as a stream when it asks for one. What goes wrong is in the reply.

        `timeout_s` is from the moment that it may go out to the end of the answer.
        """
        streamed = bool(body.get("stream"))
        if streamed and path != "/generate":
            body = {"stream_options": STREAM_OPTIONS, **body}
        data = json.dumps(body).encode()  # a prompt of a million tokens takes tens of milliseconds
        async with self._slots:
            exchange = _Exchange(path, streamed)
            failure = await self._exchange("POST", path, data, exchange, timeout_s)
        return exchange.reply(failure)

    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, bytes]:
        """Status and body. Raises ConnectionError when nobody answers in time."""
        exchange = _Exchange(path, streamed=False)
        failure = await self._exchange("GET", path, b"", exchange, timeout_s)
        if failure:
            raise ConnectionError(f"{self.endpoint}{path}: {failure}")
        return exchange.status, bytes(exchange.body)

    async def _exchange(
        self, method: str, path: str, body: bytes, exchange: _Exchange, timeout_s: float
    ) -> str | None:
        head = f"{method} {path} HTTP/1.1\r\n{self._fields}"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        try:
            async with asyncio.timeout(timeout_s):
                await self._pool.exchange(f"{head}\r\n".encode() + body, exchange)
        except TimeoutError:
            return f"no whole answer in {timeout_s:g} s"
        except ConnectionRefusedError:
            return "nobody listens there (connection refused)"
        except (OSError, UnicodeError) as error:
            return str(error) or type(error).__name__
        return None


class _Exchange:
    """The receiver of one answer."""

    def __init__(self, path: str, streamed: bool) -> None:
        self.status = 0
        self.body = bytearray()
        self._content_type = ""
        self._streamed = streamed
        self._ended = self._started = time.monotonic()
        self._answer = Answer(path)
        self._events: Events | None = None

    def sent(self, at: float) -> None:
        self._ended = self._started = at

    def head(self, status: int, content_type: str, at: float) -> None:
        self.status, self._content_type, self._ended = status, content_type, at
        if status == 200 and content_type.startswith("text/event-stream"):
            self._events = Events()

    def data(self, data: bytes, at: float) -> None:
        self._ended = at
        if self._events is None:
            self.body += data
        else:
            for event in self._events.feed(data):
                self._answer.event(event, at - self._started)

    def reply(self, failure: str | None) -> Reply:
        answer = self._answer
        if failure is None:
            self._close()
        return Reply(
            status=self.status,
            error=answer.error or failure,
            seconds=(time.monotonic() if failure else self._ended) - self._started,
            text=answer.text,
            reasoning=answer.reasoning,
            tool_calls=answer.tool_calls,
            finish=answer.finish,
            usage=answer.usage,
            arrivals=tuple(answer.arrivals),
            body=answer.body,
            started=self._started,
        )

    def _close(self) -> None:
        if self.status != 200:
            self._answer.refused(self.status, bytes(self.body))
        elif self._events is not None:
            self._answer.end_of_stream()
        else:
            if self._streamed:
                self._answer.fail(f"it answered with {self._content_type or 'no type'}, not with a stream")
            self._answer.whole(bytes(self.body), self._content_type)
