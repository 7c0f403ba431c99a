"""What passes through the front, byte by byte."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from front_world import CHAT, SSE, Engine, chunk, read_body, read_head, request, run, split, unchunk, world

if TYPE_CHECKING:
    from pathlib import Path

    from front_world import World

EVENT = b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n'


async def echo(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> None:
    """Answers with the request's head and body."""
    out = head + await read_body(reader, writer, head)
    name = b"0" if head.startswith(b"HEAD") else b"%d" % len(out)
    writer.write(
        b"HTTP/1.1 200 Fine\r\nserver: e\r\nx-a: 1\r\nx-a: 2\r\nContent-Length: " + name + b"\r\n\r\n"
    )
    writer.write(b"" if head.startswith(b"HEAD") else out)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_every_method_path_query_and_header(tmp_path: Path, method: str) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            body = b"" if method in ("GET", "HEAD") else b'{"a": 1}'
            target = "/v1/x%20y/?q=%C3%A4&b=/health"
            extra = "Authorization: Bearer k\r\nX-Twice: 1\r\nx-twice: 2\r\nConnection: x-hop\r\nX-Hop: 1\r\n"
            status, headers, out = await w.ask(request(method, target, body, close=True, extra=extra))
            assert (status, headers["x-a"], headers["connection"]) == (200, "2", "close")
            seen = w.engine.heads[0]
            assert seen.startswith(f"{method} {target} HTTP/1.1\r\n".encode())
            assert seen.lower().count(b"x-twice: ") == 2
            assert b"authorization" not in seen.lower()
            assert b"x-hop" not in seen.lower()
            assert b"connection" not in seen.lower()
            assert out == (b"" if method == "HEAD" else seen + body)
            assert w.log.lines[0]["path"] == "/v1/x y"
            assert (w.log.lines[0]["status"], w.log.lines[0]["end"]) == (200, "ok")
            assert "q=" not in str(w.log.lines)

    run(test)


def test_events_pass_when_they_come(tmp_path: Path) -> None:
    gap = 0.1

    async def slow(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(SSE)
        for n in range(5):
            writer.write(chunk(EVENT % n))
            await asyncio.sleep(gap)
        writer.write(b"0\r\n\r\n")

    async def test() -> None:
        async with world(tmp_path, slow) as w:
            reader, writer = await w.say(request("POST", CHAT, b"{}"))
            await read_head(reader)
            times = []
            for n in range(5):
                assert await reader.readuntil(b"\n\n\r\n") == chunk(EVENT % n)
                times.append(time.monotonic())
            gaps = [b - a for a, b in pairwise(times)]
            assert min(gaps) > gap / 2, gaps
            assert await reader.readexactly(5) == b"0\r\n\r\n"
            writer.close()

    run(test)


def test_64_streams_keep_their_bytes(tmp_path: Path) -> None:
    async def noise(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        seed = int(head.split()[1].rpartition(b"/")[2])
        rng = random.Random(seed)  # noqa: S311 - noise that can be had again
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        digest = hashlib.sha256()
        for _ in range(rng.randrange(1, 60)):
            data = rng.randbytes(rng.choice((1, 100, 5000, 70000)))
            digest.update(data)
            framed = chunk(data)
            cut = rng.randrange(len(framed))
            writer.write(framed[:cut])
            await asyncio.sleep(rng.random() * 0.01)
            writer.write(framed[cut:])
            await writer.drain()
        writer.write(chunk(digest.digest()) + b"0\r\n\r\n")

    async def one(w: World, seed: int) -> None:
        _, _, rest = await w.ask(request("GET", f"/noise/{seed}", b"", close=True))
        body = unchunk(rest)
        assert hashlib.sha256(body[:-32]).digest() == body[-32:], seed

    async def test() -> None:
        async with world(tmp_path, noise) as w:
            await asyncio.gather(*(one(w, seed) for seed in range(64)))
            assert w.front.exchanges == set()

    run(test)


def test_large_bodies_stream_and_do_not_pile_up(tmp_path: Path) -> None:
    size, got = 64 * 1024 * 1024, 0

    async def late(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        nonlocal got
        await asyncio.sleep(0.5)  # reads nothing at first
        engine.gone.set()
        while got < size:
            got += len(await reader.read(1 << 20))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def test() -> None:
        async with world(tmp_path, late) as w:
            head = f"POST /up HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n"
            reader, writer = await w.say(head.encode())
            sent = 0
            piece = bytes(1 << 20)
            while sent < size:
                writer.write(piece)
                sent += len(piece)
                try:
                    await asyncio.wait_for(writer.drain(), 0.2)
                except TimeoutError:
                    break
            assert sent < size / 2, "the front read what the engine did not take"
            await w.engine.gone.wait()
            writer.write(bytes(size - sent))
            assert split(await reader.read())[0] == 200
            writer.close()

    run(test)


def test_a_client_that_reads_nothing_holds_the_engine(tmp_path: Path) -> None:
    sent = 0

    async def flood(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(64):
            writer.write(chunk(bytes(1 << 20)))
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    async def test() -> None:
        async with world(tmp_path, flood) as w:
            reader, writer = await w.say(request("GET", "/flood", b"", close=True))
            await asyncio.sleep(0.7)
            held = sent
            assert held < 40
            await asyncio.sleep(0.3)
            assert sent == held
            assert len(unchunk(split(await reader.read())[2])) == 64 << 20
            writer.close()

    run(test)


def test_connections_are_kept_on_both_sides(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            reader, writer = await w.connect()
            for n in range(20):
                writer.write(request("POST", f"/{n}", b"x"))
                head = await read_head(reader)
                await reader.readexactly(int(split(head)[1]["content-length"]))
            assert w.engine.connections == 1
            writer.close()

    run(test)


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            requests = [request("POST", f"/{n}", b"%d" % n) for n in range(9)]
            out = (await w.ask(b"".join(requests) + request("GET", "/last", b"", close=True)))[2]
            places = [out.index(f"/{n} HTTP".encode()) for n in [*range(9), "last"]]
            assert places == sorted(places)
            assert len(w.engine.heads) == 10

    run(test)


@pytest.mark.parametrize("seed", range(8))
def test_segments_do_not_matter(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            rng = random.Random(seed)  # noqa: S311 - the same cuts every time
            bodies = [rng.randbytes(rng.randrange(3000)) for _ in range(5)]
            data = b"".join(request("POST", f"/{n}", body) for n, body in enumerate(bodies))
            cuts = sorted(rng.sample(range(1, len(data)), 12))
            reader, writer = await w.connect()
            for begin, end in pairwise([0, *cuts, len(data)]):
                writer.write(data[begin:end])
                await asyncio.sleep(0.002)
            for n, body in enumerate(bodies):
                out = await reader.readexactly(int(split(await read_head(reader))[1]["content-length"]))
                assert out.startswith(f"POST /{n} ".encode())
                assert out.endswith(body)
            writer.close()

    run(test)


@pytest.mark.parametrize("close", [False, True])
def test_an_empty_line_behind_a_body_is_nothing(tmp_path: Path, close: bool) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            reader, writer = await w.connect()
            for n in range(3):
                writer.write(request("POST", f"/{n}", b"{}", close=close) + b"\r\n")
                status, headers, _ = split(await read_head(reader))
                assert status == 200
                await reader.readexactly(int(headers["content-length"]))
                if close:
                    assert await reader.read() == b""
                    return
            writer.write(b"\r\n" + request("GET", "/last", b"", close=True))
            assert split(await reader.read())[0] == 200

    run(test)


def test_chunked_request_and_expect(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            head = "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
            reader, writer = await w.say(f"{head}expect: 100-continue\r\n\r\n".encode())
            assert await read_head(reader) == b"HTTP/1.1 100 \r\n\r\n"
            writer.write(chunk(b"abc") + chunk(b"defg") + b"0\r\nX-Trailer: 1\r\n\r\n")
            _, _, body = split(await reader.read())
            assert body.endswith(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
            assert b"content-length" not in w.engine.heads[0]
            writer.close()

    run(test)


def test_http_1_0_client(tmp_path: Path) -> None:
    async def stream(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(SSE + chunk(b"abc") + chunk(b"def") + b"0\r\n\r\n")

    async def test() -> None:
        async with world(tmp_path, stream) as w:
            status, headers, body = await w.ask(b"GET /x HTTP/1.0\r\n\r\n")
            assert (status, body) == (200, b"abcdef")
            assert "transfer-encoding" not in headers
            assert b"host: 127.0.0.1" in w.engine.heads[0]

    run(test)


@pytest.mark.parametrize(
    ("head", "body", "kept"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b"", True),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil close", b"until close", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc", b"abc", False),
        (
            b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            b"a",
            True,
        ),
    ],
)
def test_ends_of_responses(tmp_path: Path, head: bytes, body: bytes, kept: bool) -> None:
    async def answer(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: bytes
    ) -> None:
        writer.write(head)
        if not kept:
            writer.close()

    async def test() -> None:
        async with world(tmp_path, answer) as w:
            for _ in range(2):
                out = (await w.ask(request("GET", "/x", b"", close=True)))[2]
                out = out.rpartition(b"\r\n\r\n")[2] if b"HTTP/1.1 200" in out else out
                assert (unchunk(out) if out[:1] == b"b" else out) == body
            assert w.engine.connections == (1 if kept else 2)

    run(test)
