"""Misbehaviour on both sides: clients that go, drip or lie, engines that die, hang or talk nonsense."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from front_world import CHAT, SSE, Engine, chunk, read_head, request, run, split, world

from sparkserve.front import config

if TYPE_CHECKING:
    from pathlib import Path

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


async def hang(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> None:
    """Starts a stream for /v1/..., nothing for others, and notices when the client goes."""
    if b"/v1/" in head:
        writer.write(SSE + chunk(EVENT))
    await reader.read()  # the request's body, then the end
    engine.gone.set()


@pytest.mark.parametrize("path", [CHAT, "/nothing-yet"])
@pytest.mark.parametrize("how", ["close", "shutdown", "reset"])
def test_a_client_that_goes_takes_its_request_along(tmp_path: Path, path: str, how: str) -> None:
    async def test() -> None:
        async with world(tmp_path, hang) as w:
            reader, writer = await w.say(request("GET", path, b""))
            if path == CHAT:
                await reader.readuntil(EVENT)
            else:
                while not w.engine.heads:
                    await asyncio.sleep(0.01)
            if how == "shutdown":
                writer.write_eof()
            elif how == "reset":
                writer.transport.abort()
            else:
                writer.close()
            async with asyncio.timeout(1):
                await w.engine.gone.wait()
            assert w.front.exchanges == set()
            assert w.log.lines[-1]["end"] == "client_gone"
            writer.close()

    run(test)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_a_stream_whose_engine_dies_ends_with_an_error(tmp_path: Path, path: str, reset: bool) -> None:
    async def die(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        half = b'data: {"choices":[{"del'
        writer.write(SSE + chunk(EVENT) + chunk(half))
        await writer.drain()
        await asyncio.sleep(0.05)
        if reset:
            writer.transport.abort()
        else:
            writer.close()

    async def test() -> None:
        async with world(tmp_path, die) as w:
            status, _, out = await w.ask(request("POST", path, b"{}"))
            assert status == 200
            assert b"[DONE]" not in out
            assert not out.endswith(b"0\r\n\r\n")  # to HTTP too, the answer is not complete
            last = out.split(b"\n\n")[-2]
            assert (b"event: error\n" in last) == (path == "/v1/messages")
            error = json.loads(last.partition(b"data: ")[2])["error"]
            assert "broke off" in error["message"]
            assert w.log.lines[-1]["end"] == "engine_lost"

    run(test)


def test_an_answer_that_is_cut_is_not_taken_for_whole(tmp_path: Path) -> None:
    async def die(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{")
        await writer.drain()
        writer.close()

    async def test() -> None:
        async with world(tmp_path, die) as w:
            status, headers, out = await w.ask(request("POST", CHAT, b"{}"))
            assert (status, headers["content-length"], out) == (200, "10", b"{")

    run(test)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 300_000,
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",
    ],
)
def test_an_engine_without_sense_is_a_502(tmp_path: Path, nonsense: bytes) -> None:
    async def talk(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(nonsense)
        writer.close()

    async def test() -> None:
        async with world(tmp_path, talk) as w:
            reader, writer = await w.say(request("POST", CHAT, b"{}"))
            status, headers, _ = split(await read_head(reader))
            assert status == 502
            error = json.loads(await reader.readexactly(int(headers["content-length"])))["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert error["code"] == "engine_lost"
            writer.write(request("GET", "/health", b"", close=True))  # the client's connection goes on
            assert split(await reader.read())[0] == 200
            writer.close()

    run(test)


def test_words_after_an_answer_reach_nobody(tmp_path: Path) -> None:
    async def talk(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n"
        writer.write(answer + b"a")
        await asyncio.sleep(0.05)
        writer.write(answer + b"b")

    async def test() -> None:
        async with world(tmp_path, talk) as w:
            for _ in range(3):
                assert (await w.ask(request("GET", "/x", b"", close=True)))[2] == b"a"
                await asyncio.sleep(0.1)
            assert w.engine.connections == 3

    run(test)


def test_no_engine_is_a_503(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, hang, engine=config.Address("127.0.0.1", 1)) as w:
            status, headers, body = await w.ask(request("POST", CHAT, b"{}", close=True))
            assert (status, headers["retry-after"]) == (503, "10")
            assert json.loads(body)["error"]["code"] == "engine_unreachable"

    run(test)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\na : y\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * 300_000, 431),
        (b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n", 405),
        (b"POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
def test_a_client_without_sense_is_refused(tmp_path: Path, data: bytes, status: int) -> None:
    async def test() -> None:
        async with world(tmp_path, hang) as w:
            got, headers, body = await w.ask(data)
            assert got == status
            assert headers["connection"] == "close"
            assert "message" in json.loads(body)["error"]

    run(test)


def test_an_upgrade_is_not_taken_up_and_the_body_passes(tmp_path: Path) -> None:
    async def answer(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        body = await reader.readexactly(2)
        assert b"upgrade" not in head.lower()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + body)

    async def test() -> None:
        async with world(tmp_path, answer) as w:
            extra = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"
            reader, writer = await w.say(request("POST", CHAT, b"{}", extra=extra) * 2)
            for _ in range(2):
                assert (await read_head(reader)).startswith(b"HTTP/1.1 200")
                assert await reader.readexactly(2) == b"{}"
            writer.close()

    run(test)


def test_limits_on_time(tmp_path: Path) -> None:
    """A head that drips, a body that stops, a connection that is only kept: closed, each at its limit."""
    now = 0.0

    async def test() -> None:
        nonlocal now
        async with world(tmp_path, hang, clock=lambda: now) as w:
            for data, limit in (
                (b"GET / HTTP/1.1\r\nhost: x\r\n", config.HEAD_S),
                (b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n", config.BODY_S),
                (b"", config.IDLE_S),
                (request("GET", "/health", b""), config.IDLE_S),
            ):
                _, writer = await w.say(data)
                await asyncio.sleep(0.05)
                now += limit - 1
                writer.write(b"x" if data.startswith(b"GET / ") else b"")  # one more drop changes nothing
                await asyncio.sleep(0.05)
                w.front.sweep()
                assert len(w.front.clients) == 1
                now += 2
                w.front.sweep()
                await asyncio.sleep(0.05)
                assert w.front.clients == set()
                writer.close()

    run(test)


def test_an_early_answer_leaves_the_connection_sound(tmp_path: Path) -> None:
    async def refuse(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async def test() -> None:
        async with world(tmp_path, refuse) as w:
            reader, writer = await w.say(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
            assert (await read_head(reader)).startswith(b"HTTP/1.1 413")
            writer.write(bytes(100_000) + request("GET", "/health", b"", close=True))
            assert split(await reader.read())[0] == 200
            writer.close()

    run(test)
