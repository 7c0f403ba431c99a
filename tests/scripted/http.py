"""HTTP/1.1 for one loop: requests read whole, answers whole or in chunks."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
}


@dataclass
class Exchange:
    """One request and the way back."""

    method: str
    path: str
    body: bytes
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    cut: bool = False  # the connection ends with this exchange

    @property
    def gone(self) -> bool:
        """Whether the client has left."""
        return self._reader.at_eof() or self._writer.is_closing()

    def send(
        self, body: bytes | str | dict[str, Any], status: int = 200, kind: str = "application/json"
    ) -> None:
        """A whole answer; half of one where the connection is to be cut."""
        data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else dumps(body)
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\nContent-Type: {kind}\r\n"
        self._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode())
        self._writer.write(data[: len(data) // 2] if self.cut else data)

    def begin(self) -> None:
        """A stream of events."""
        self._writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def event(self, data: bytes) -> None:
        """One event, in a chunk of its own as uvicorn does."""
        line = b"data: %b\n\n" % data
        self._writer.write(b"%x\r\n%b\r\n" % (len(line), line))

    def end(self) -> None:
        """The stream is whole."""
        self._writer.write(b"0\r\n\r\n")

    async def drain(self) -> None:
        """Until the client has taken enough of it."""
        await self._writer.drain()


def dumps(value: object) -> bytes:
    """As SGLang writes JSON: short, and NaN is null."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    """The next request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, _, rest = head.partition("\r\n")
        fields = dict(line.lower().split(":", 1) for line in rest.splitlines() if ":" in line)
        body = await reader.readexactly(int(fields.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    method, target, _ = first.split(" ", 2)
    return Exchange(method, target.partition("?")[0], body, reader, writer)
