"""The client's connections: kept, limited, closed, and nobody else's."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from client_world import CHAT, CLOSE, delta, run, server, stream, whole

from sparkserve.client.client import STREAM_OPTIONS, Client

if TYPE_CHECKING:
    import pytest

GOOD = stream(delta(1, content="Hello"), delta(1, finish="stop"))


def test_a_connection_serves_one_request_after_the_other() -> None:
    async def ask() -> None:
        async with server(GOOD) as (endpoint, seen), Client(endpoint) as client:
            for _ in range(5):
                assert (await client.ask(CHAT, {"stream": True})).error is None
            assert (seen.connections, len(seen.requests)) == (1, 5)

    run(ask)


def test_streams_at_once_and_no_more() -> None:
    async def ask() -> None:
        pieces = [GOOD[:-5], GOOD[-5:]]
        async with server(pieces, pause_s=0.05) as (endpoint, seen), Client(endpoint, streams=3) as client:
            replies = await asyncio.gather(*(client.ask(CHAT, {"stream": True}) for _ in range(9)))
            assert [reply.error for reply in replies] == [None] * 9
            assert (seen.most, seen.connections) == (3, 3)

    run(ask)


def test_waiting_for_a_turn_is_no_time_of_the_request() -> None:
    async def ask() -> None:
        pieces = [GOOD[:-5], GOOD[-5:]]
        async with server(pieces, pause_s=0.2) as (endpoint, _), Client(endpoint, streams=1) as client:
            replies = await asyncio.gather(*(client.ask(CHAT, {"stream": True}) for _ in range(3)))
            assert all(reply.error is None for reply in replies)
            starts = sorted(reply.started for reply in replies)
            assert all(b - a >= 0.2 for a, b in pairwise(starts))

    run(ask)


def test_a_kept_connection_that_was_closed_is_replaced() -> None:
    first = True

    def answer(_: dict[str, Any]) -> list[bytes]:
        nonlocal first
        first, was = False, first
        return [GOOD] if was else [CLOSE]

    async def ask() -> None:
        async with server(answer) as (endpoint, seen), Client(endpoint) as client:
            assert (await client.ask(CHAT, {"stream": True})).error is None
            # The server takes the second request on the kept connection, and closes: once more on a new one,
            # where a closed connection is an answer.
            reply = await client.ask(CHAT, {"stream": True})
            assert reply.error == "it closed the connection before the answer was whole"
            assert (seen.connections, len(seen.requests)) == (2, 3)

    run(ask)


def test_a_connection_that_the_server_wants_closed_is_not_kept() -> None:
    closing = GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)

    async def ask() -> None:
        async with server(closing) as (endpoint, seen), Client(endpoint) as client:
            for _ in range(2):
                assert (await client.ask(CHAT, {"stream": True})).error is None
            assert seen.connections == 2

    run(ask)


def test_words_after_an_answer_are_not_the_next_ones() -> None:
    async def ask() -> None:
        other = stream(delta(1, content="other's", finish="stop"))
        async with server(GOOD + other) as (endpoint, seen), Client(endpoint) as client:
            for _ in range(2):
                reply = await client.ask(CHAT, {"stream": True})
                assert reply.text in ("Hello", "")
                assert (reply.text == "Hello") or reply.error
            assert seen.connections >= 2

    run(ask)


def test_an_interim_answer_is_skipped() -> None:
    async def ask() -> None:
        async with (
            server(b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD) as (endpoint, _),
            Client(endpoint) as client,
        ):
            assert (await client.ask(CHAT, {"stream": True})).text == "Hello"

    run(ask)


def test_what_is_asked_of_a_stream() -> None:
    async def ask() -> None:
        async with server(GOOD) as (endpoint, seen), Client(endpoint) as client:
            await client.ask(CHAT, {"stream": True, "model": "m"})
            await client.ask(CHAT, {"stream": True, "stream_options": {"include_usage": True}})
            await client.ask("/generate", {"stream": True, "text": "a\ud800"})
            await client.ask(CHAT, {"model": "m"})
        assert seen.requests[0] == {"stream": True, "model": "m", "stream_options": STREAM_OPTIONS}
        assert seen.requests[1]["stream_options"] == {"include_usage": True}
        assert seen.requests[2] == {"stream": True, "text": "a\ud800"}
        assert seen.requests[3] == {"model": "m"}
        assert "content-type: application/json\r\n" in seen.heads[0].lower()

    run(ask)


def test_get() -> None:
    async def ask() -> None:
        async with (
            server(whole(b"a 1\n", "503 Busy", "text/plain")) as (endpoint, _),
            Client(endpoint) as client,
        ):
            assert await client.get("/metrics") == (503, b"a 1\n")

    run(ask)


def test_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def ask() -> None:
        async with server(GOOD) as (endpoint, _), Client(endpoint) as client:
            assert (await client.ask(CHAT, {"stream": True})).error is None

    run(ask)
