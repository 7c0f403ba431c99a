"""A server of raw bytes for the client's tests, in the test's own loop."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparkserve.client.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from sparkserve.client.reply import Reply

CHAT = "/v1/chat/completions"
CLOSE = b"close"  # in a list of pieces: close the connection here
SSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@dataclass
class Seen:
    """What the server saw."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    gone: int = 0  # clients that closed while it still answered
    now: int = 0
    most: int = 0  # requests at once


def whole(body: object, status: str = "200 OK", content_type: str = "application/json") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream(*events: object, done: bool = True, end: bool = True) -> bytes:
    """Each event in a chunk of its own."""
    out = SSE
    for event in events:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        out += chunked(b"data: %b\n\n" % data)
    return out + (chunked(b"data: [DONE]\n\n") if done else b"") + (b"0\r\n\r\n" if end else b"")


def delta(usage: int | None = None, finish: str | None = None, **fields: object) -> dict[str, Any]:
    """An event of a chat."""
    event: dict[str, Any] = {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
    if usage is not None:
        event["usage"] = {"prompt_tokens": 5, "completion_tokens": usage, "total_tokens": 5 + usage}
    return event


@asynccontextmanager
async def server(
    answer: Callable[[dict[str, Any]], bytes | list[bytes]] | bytes | list[bytes], pause_s: float = 0.0
) -> AsyncIterator[tuple[str, Seen]]:
    """Answers each request with bytes, or with pieces and a pause between them; CLOSE ends the connection."""
    seen = Seen()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        try:
            while await one(reader, writer):
                pass
        except ConnectionError:
            seen.gone += 1
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = head.lower().partition("content-length: ")[2].partition("\r")[0]
        request = json.loads(await reader.readexactly(int(length))) if length else {}
        seen.heads.append(head)
        seen.requests.append(request)
        seen.now += 1
        seen.most = max(seen.most, seen.now)
        try:
            reply = answer(request) if callable(answer) else answer
            for piece in reply if isinstance(reply, list) else [reply]:
                if piece == CLOSE:
                    return False
                writer.write(piece)
                await writer.drain()
                if pause_s:
                    await asyncio.sleep(pause_s)
                if reader.at_eof():
                    seen.gone += 1
                    return False
            return True
        finally:
            seen.now -= 1

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", seen
    finally:
        listening.close()


def asked(answer: bytes | list[bytes], path: str = CHAT, *, timeout_s: float = 20.0, **body: object) -> Reply:
    """One request to a server with this answer."""

    async def run() -> Reply:
        async with server(answer) as (endpoint, _), Client(endpoint) as client:
            return await client.ask(path, body, timeout_s=timeout_s)

    return asyncio.run(run())


def run(test: Callable[[], Awaitable[None]]) -> None:
    """A test that is a coroutine, within 30 s."""

    async def limited() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(limited())
