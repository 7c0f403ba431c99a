"""A request for another model than the one that is served is refused; every other body passes as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest
from front_world import CHAT, MODEL, Engine, chunk, read_body, read_head, request, run, split, world

from sparkserve.front.model import Model

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

NAMED = f'"model" : "{MODEL}"'


async def echo(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> None:
    """Answers with the request's body."""
    body = await read_body(reader, writer, head)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings", "/v1/messages", "/v1/messages/count_tokens"])
def test_another_model_is_not_found(tmp_path: Path, path: str) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            body = json.dumps({"messages": [{"content": NAMED}], "model": "gpt-4", "n": 1}).encode()
            status, headers, said = await w.ask(request("POST", path, body))
            error = json.loads(said)["error"]
            assert (status, headers["content-type"]) == (404, "application/json")
            assert error["message"] == (
                f"The model `gpt-4` does not exist here: this endpoint serves `{MODEL}`."
            )
            if "messages" in path:
                assert error["type"] == "not_found_error"
            else:
                kind, code = error["type"], error["code"]
                assert (kind, code) == ("invalid_request_error", "model_not_found")
            assert w.log.lines[-1]["end"] == "model_not_found"
            assert w.front.exchanges == set()
            # The front goes on, also on the engine's side.
            body = json.dumps({"model": MODEL}).encode()
            assert (await w.ask(request("POST", path, body, close=True)))[2] == body

    run(test)


def test_the_openai_client_says_not_found(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            url = f"http://127.0.0.1:{w.port}/v1"
            client = openai.AsyncOpenAI(
                base_url=url, api_key="none", http_client=openai.DefaultAsyncHttpxClient(trust_env=False)
            )
            with pytest.raises(openai.NotFoundError) as caught:
                await client.chat.completions.create(model="gpt-4", messages=[], stream=True)
            assert caught.value.code == "model_not_found"
            await client.close()

    run(test)


@pytest.mark.parametrize(
    "body",
    [
        b"{" + NAMED.encode() + b"}",
        b'{"model": "%s:lora"}' % MODEL.encode(),
        b'{"mod\\u0065l": "smoll\\u006d2"}',
        b"{}",
        b'{"model": null}',
        b'{"model": ["gpt-4"]}',
        b'["model"]',
        b'{"model": "gpt-4"',
        b"\xff\xfe",
        b"[" * 100_000,
        b"",
    ],
)
def test_what_names_no_other_model_passes(tmp_path: Path, body: bytes) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            status, _, out = await w.ask(request("POST", CHAT, body, close=True))
            assert (status, out) == (200, body)

    run(test)


@pytest.mark.parametrize("path", ["/generate", "/tokenize"])
def test_other_paths_are_the_engines_own(tmp_path: Path, path: str) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            body = b'{"model": "gpt-4"}'
            assert (await w.ask(request("POST", path, body, close=True)))[2] == body

    run(test)


def test_a_body_that_comes_in_pieces_and_asks_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, echo) as w:
            fields = "host: x\r\nexpect: 100-continue\r\ntransfer-encoding: chunked"
            head = f"POST {CHAT} HTTP/1.1\r\n{fields}\r\n\r\n"
            for name, wanted in ((MODEL, 200), ("gpt-4", 404)):
                reader, writer = await w.say(head.encode())
                assert await read_head(reader) == b"HTTP/1.1 100 \r\n\r\n"
                pieces = [b'{"messages": [], "mo', b'del": "', name.encode(), b'"}']
                for piece in pieces:
                    writer.write(chunk(piece))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
                status, headers, _ = split(await read_head(reader))
                assert status == wanted
                out = await reader.readexactly(int(headers["content-length"]))
                assert wanted == 404 or out == b"".join(map(chunk, pieces)) + b"0\r\n\r\n"
                writer.close()

    run(test)


def test_a_very_large_body_passes_unread_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkserve.front.exchange.CHECKED_BYTES", 100_000)

    async def test() -> None:
        async with world(tmp_path, echo) as w:
            for size, wanted in ((90_000, 404), (300_000, 200)):
                body = json.dumps({"prompt": "x" * size, "model": "gpt-4"}).encode()
                status, _, out = await w.ask(request("POST", CHAT, body, close=True))
                assert status == wanted
                assert wanted == 404 or out == body

    run(test)


def test_a_prompt_about_the_name_does_not_count() -> None:
    assert Model("a").other(json.dumps({"prompt": '"model": "a"', "model": "b"}).encode()) == "b"
    assert Model('q"\\').other(json.dumps({"model": 'q"\\'}).encode()) is None
