"""A front between real sockets: an engine that does what the test says, and clients that speak in bytes."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sparkserve.front import state
from sparkserve.front.access import AccessLog
from sparkserve.front.config import Address, Config
from sparkserve.front.server import Front

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Handler = Callable[["Engine", asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHAT = "/v1/chat/completions"
MODEL = "smollm2"


class Log(AccessLog):
    """An access log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.dropped = 0

    def line(self, **values: Any) -> None:
        self.lines.append(values)


@dataclass
class Engine:
    """What the scripted engine has seen. `probe` is the status line it answers canaries with; None hangs."""

    probe: bytes | None = b"200 OK"
    probes: int = 0
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class World:
    """The front, its port, the engine behind it, its log, and the clock that tests may turn."""

    front: Front
    port: int
    engine: Engine
    log: Log
    folder: Path

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)

    async def say(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect and send bytes."""
        reader, writer = await self.connect()
        writer.write(data)
        return reader, writer

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send bytes; status, headers and all that follows up to the end of the connection."""
        reader, writer = await self.say(data)
        try:
            async with asyncio.timeout(10):
                return split(await reader.read())
        finally:
            writer.close()

    async def get(self, path: str) -> tuple[int, dict[str, str], Any]:
        """GET; the body as JSON when it is."""
        status, headers, body = await self.ask(request("GET", path, b"", close=True))
        return status, headers, json.loads(body) if "json" in headers.get("content-type", "") else body

    def group(self, is_: str, **values: Any) -> None:
        """What the controller says now; seen at once."""
        value = state.Group.model_validate({"state": is_, "boot": "b1", **values})
        state.write(self.folder / "group.json", value)
        self.front.tick()


def request(method: str, path: str, body: bytes, *, close: bool = False, extra: str = "") -> bytes:
    """A request's bytes."""
    end = "connection: close\r\n" if close else ""
    size = f"content-length: {len(body)}\r\n" if body or method == "POST" else ""
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\n{extra}{end}{size}\r\n".encode() + body


def split(data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers, the rest."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]) if lines[0] else 0, headers, rest


def chunk(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def unchunk(data: bytes) -> bytes:
    """The body in a chunked one; what is left of it must be the end, or nothing."""
    out, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        length = int(data[at:end], 16)
        out.append(data[end + 2 : end + 2 + length])
        at = end + length + 4
        assert length or at == len(data)
    return b"".join(out)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """A message's head, b"" at the end of the connection."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


async def read_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> bytes:
    """What comes after a request's head, as it comes; a client that asks first is told to go on."""
    _, headers, _ = split(b"HTTP/1.1 200 x\r\n" + head.partition(b"\r\n")[2])
    if "expect" in headers:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", ""):
        return await reader.readuntil(b"0\r\n\r\n")
    return await reader.readexactly(int(headers.get("content-length", 0)))


@asynccontextmanager
async def world(folder: Path, handler: Handler, **config: Any) -> AsyncIterator[World]:
    """A running front that holds the group for up. `handler` gets each request that is no canary."""
    engine = Engine()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine.connections += 1
        try:
            while head := await read_head(reader):
                if head.startswith(b"GET /health_generate"):
                    engine.connections -= 1
                    engine.probes += 1
                    if engine.probe is None:
                        await reader.read()
                        return
                    writer.write(b"HTTP/1.1 " + engine.probe + b"\r\ncontent-length: 0\r\n\r\n")
                    continue
                engine.heads.append(head)
                await handler(engine, reader, writer, head)
        except ConnectionError:
            engine.gone.set()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    log = Log()
    front_config = Config(
        listen=(Address("127.0.0.1", 0),),
        engine=Address("127.0.0.1", port),
        model=MODEL,
        group_file=folder / "group.json",
        front_file=folder / "front.json",
        grace_s=0.2,
    )
    clock: Callable[[], float] = config.pop("clock", time.monotonic)
    front = Front(replace(front_config, **config), log, clock)
    state.write(folder / "group.json", state.Group(state="up", boot="b1"))
    ports = await front.start()
    try:
        yield World(front, ports[0], engine, log, folder)
    finally:
        await front.stop()
        server.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine; nothing may take longer than half a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(bounded())
