"""What goes wrong is an error in plain words, never an exception."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest
from client_world import CHAT, CLOSE, SSE, asked, chunked, delta, run, server, stream, whole

from sparkserve.client.client import Client

GOOD = stream(delta(1, content="Hello"), delta(1, finish="stop"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (whole({"object": "error", "message": "no such model"}, "404 Not Found"), "HTTP 404: no such model"),
        (whole({"error": {"message": "too long"}}, "400 Bad Request"), "HTTP 400: too long"),
        (whole(b"<html>oops</html>", "502 Bad Gateway", "text/html"), "HTTP 502: <html>oops</html>"),
        (whole(b"", "503 Service Unavailable"), "HTTP 503: "),
        (
            stream(delta(content="a"), {"error": {"message": "out of memory"}}),
            "the stream said: out of memory",
        ),
        (stream(delta(content="a", finish="stop"), done=False), "without [DONE]"),
        (stream(delta(content="a")), "without a finish reason"),
        (stream(delta(content="a", finish="abort")), "gave the request up"),
        (stream(b"{not json"), "another shape"),
        (stream(b"\xff\xfe"), "another shape"),
        (stream(b"[" * 100_000), "another shape"),
        (stream(b"[1]"), "another shape"),
        (stream(b"7"), "another shape"),
        (stream({"choices": [None]}), "another shape"),
        (stream(delta(content=["a"])), "another shape"),
        (stream({"choices": [], "usage": {"prompt_tokens": None, "completion_tokens": 1}}), "another shape"),
        (whole({"choices": []}), "not with a stream"),
        ([stream(delta(content="a"), done=False, end=False), CLOSE], "before the answer was whole"),
        ([SSE[:30], CLOSE], "before the answer was whole"),
        ([CLOSE], "before the answer was whole"),
        ([SSE + chunked(b"data: 1\n")[:-4], CLOSE], "before the answer was whole"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "spoke no HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "headers are longer"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "spoke no HTTP"),
    ],
)
def test_a_broken_stream(answer: bytes | list[bytes], words: str) -> None:
    reply = asked(answer, stream=True)
    assert reply.error is not None
    assert words in reply.error
    assert "\n" not in reply.error
    assert len(reply.error) < 300


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (whole(b'{"choices": [{"ind'), "another shape"),
        (whole({"choices": []}), "no finish reason"),
        (whole([]), ""),
        (whole(None), "another shape"),
        ([whole({"choices": []})[:-5], CLOSE], "before the answer was whole"),
    ],
)
def test_a_broken_whole_answer(answer: bytes | list[bytes], words: str) -> None:
    assert words in (asked(answer).error or "")


def test_what_came_before_the_break_is_there() -> None:
    reply = asked([stream(delta(3, content="half"), done=False, end=False), CLOSE], stream=True)
    assert (reply.text, reply.usage and reply.usage.completion_tokens) == ("half", 3)
    assert len(reply.arrivals) == 1


def test_garbage_of_any_kind_raises_nothing() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    dice = random.Random(seed)  # noqa: S311 - a test
    for _ in range(150):
        answer = bytearray(GOOD)
        for _ in range(dice.randrange(1, 6)):
            place = dice.randrange(len(answer))
            answer[place : place + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
        reply = asked([bytes(answer), CLOSE], stream=True)
        assert reply.error is not None or reply.finish is not None


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"

        async def ask() -> None:
            async with Client(endpoint) as client:
                reply = await client.ask(CHAT, {})
                assert (reply.status, reply.error) == (0, "nobody listens there (connection refused)")
                with pytest.raises(ConnectionError, match="nobody listens"):
                    await client.get("/health")

        run(ask)


def test_a_host_that_is_no_host() -> None:
    async def ask() -> None:
        async with Client(f"http://{'a' * 70}.invalid:1") as client:
            assert (await client.ask(CHAT, {})).error

    run(ask)


@pytest.mark.parametrize(
    "endpoint",
    ["https://a:1", "127.0.0.1:80", "http://", "http://a/v1", "http://u@a:1", "http://a:x", "http://[::1"],
)
def test_no_endpoint(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Client(endpoint)


def test_silence_is_a_timeout_and_the_connection_is_closed() -> None:
    async def ask() -> None:
        part = stream(delta(1, content="Hel"), done=False, end=False)
        pieces = [part] + [b""] * 100
        async with server(pieces, pause_s=0.02) as (endpoint, seen), Client(endpoint) as client:
            reply = await client.ask(CHAT, {"stream": True}, timeout_s=0.2)
            assert reply.error == "no whole answer in 0.2 s"
            assert reply.text == "Hel"
            assert reply.seconds > 0.19  # a loop wakes up to its clock's resolution early
            while not seen.gone:
                await asyncio.sleep(0.01)
            with pytest.raises(ConnectionError, match=r"no whole answer in 0\.1 s"):
                await client.get("/metrics", timeout_s=0.1)

    run(ask)


def test_cancelled_it_closes_the_connection() -> None:
    async def ask() -> None:
        part = stream(delta(1, content="Hel"), done=False, end=False)
        pieces = [part] + [b""] * 1000
        async with server(pieces, pause_s=0.02) as (endpoint, seen), Client(endpoint) as client:
            task = asyncio.create_task(client.ask(CHAT, {"stream": True}))
            while not seen.now:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not seen.gone:
                await asyncio.sleep(0.01)

    run(ask)


def test_a_body_without_end_is_cut_at_64_mib() -> None:
    piece = chunked(b" " * 2**20)
    reply = asked([SSE, *[piece] * 70, CLOSE], stream=True, timeout_s=300)
    assert reply.error == "its body is longer than 64 MiB"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    reply = asked([head, *[b" " * 2**20] * 70, CLOSE], timeout_s=300)
    assert reply.error == "its body is longer than 64 MiB"
