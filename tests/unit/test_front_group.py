"""The front as the group goes up and down: health, refusals, canaries, and what it tells the controller."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import h11
import pytest
from front_world import CHAT, SSE, Engine, Log, chunk, read_head, request, run, split, world

from sparkserve.errors import SparkserveError
from sparkserve.front.config import Address
from sparkserve.front.server import Front

if TYPE_CHECKING:
    from pathlib import Path

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


async def answer(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> None:
    """A short answer; a stream goes on until the client is gone."""
    if b"/stream" in head or CHAT.encode() in head:
        writer.write(SSE)
        while True:
            writer.write(chunk(EVENT))
            await writer.drain()
            await asyncio.sleep(0.02)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("state", ["down", "starting", "draining"])
def test_a_group_that_is_not_up_is_not_asked(tmp_path: Path, state: str) -> None:
    async def test() -> None:
        async with world(tmp_path, answer) as w:
            await until(lambda: w.front.health.verdict == "ok")
            w.group(state, reason="rank 2 (spark-2) is lost", retry_after_s=7)
            for method, path in (
                ("POST", CHAT),
                ("GET", "/v1/models"),
                ("GET", "/"),
                ("POST", "/flush_cache"),
            ):
                status, headers, body = await w.ask(request(method, path, b"", close=True))
                assert (status, headers["retry-after"]) == (503, "7")
                error = json.loads(body)["error"]
                assert error["code"] == f"group_{state}"
                assert "rank 2 (spark-2) is lost" in error["message"]
            status, _, body = await w.ask(request("POST", "/v1/messages", b"{}", close=True))
            assert json.loads(body)["error"]["type"] == "overloaded_error"
            for path in ("/health", "/health_generate", "/ready", "/ping"):
                status, headers, value = await w.get(path)
                assert (status, headers["retry-after"], value["status"]) == (503, "7", state)
                assert value["reason"] == "rank 2 (spark-2) is lost"
            assert w.engine.heads == []

    run(test)


def test_health_is_not_passed_to_an_engine_that_would_say_200(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer, lost_s=0.5, canary_s=0.2) as w:
            await until(lambda: w.front.health.verdict == "ok")
            assert (await w.get("/health"))[0] == 200
            assert (await w.ask(request("HEAD", "/health", b"", close=True)))[2] == b""
            w.engine.probe = None  # the ranks hang; HTTP still answers
            assert (await w.get("/v1/models"))[0] == 200
            await until(lambda: w.front.health.verdict == "silent")
            for path in ("/health", "/%68ealth", "http://x/health?a"):
                status, headers, value = await w.get(path)
                assert (status, headers["retry-after"], value["status"]) == (503, "10", "silent")
            assert (await w.get("/v1/models"))[0] == 503
            told: dict[str, Any] = {"verdict": "ok"}
            while told["verdict"] == "ok":  # it is written four times a second
                await asyncio.sleep(0.05)
                told = json.loads((tmp_path / "front.json").read_text())
            assert (told["verdict"], told["pid"], told["boot"]) == ("silent", os.getpid(), "b1")
            assert told["canary"]["result"] in ("pending", "failed")
            assert told["last_token_age_s"] > 0.5
            w.engine.probe = b"200 OK"  # and go on
            await until(lambda: w.front.health.verdict == "ok")

    run(test)


def test_a_failing_probe_is_no_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer, lost_s=0.6, canary_s=0.2) as w:
            await until(lambda: w.front.health.verdict == "ok")
            w.engine.probe = b"503 Service Unavailable"
            # On a busy machine the first of these probes is still out when the verdict changes.
            await until(lambda: w.front.health.verdict == "silent" and "503" in w.front.health.reason)
            assert "503 Service Unavailable" in (await w.get("/health"))[2]["reason"]

    run(test)


def test_traffic_is_the_canary(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer, lost_s=2, canary_s=0.5) as w:
            await until(lambda: w.front.health.verdict == "ok")
            reader, writer = await w.say(request("POST", CHAT, b"{}"))
            await reader.readuntil(EVENT)
            probes = w.engine.probes
            await asyncio.sleep(1.5)
            assert w.engine.probes == probes
            assert w.front.health.verdict == "ok"
            writer.close()
            await until(lambda: w.engine.probes > probes)

    run(test)


def test_a_page_of_the_engine_is_no_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer, lost_s=0.6, canary_s=0.2) as w:
            w.engine.probe = None
            while w.front.health.verdict != "silent":
                assert (await w.get("/v1/models"))[0] in (200, 503)
            assert w.front.health.token_age_s is None

    run(test)


@pytest.mark.parametrize("path", [CHAT, "/stream", "/nothing-yet"])
def test_a_group_that_goes_down_ends_what_is_in_flight(tmp_path: Path, path: str) -> None:
    async def hang(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        if path == "/nothing-yet":
            await reader.read()
        else:
            await answer(engine, reader, writer, head)

    async def test() -> None:
        async with world(tmp_path, hang) as w:
            reader, writer = await w.say(request("GET", path, b""))
            await until(lambda: w.engine.heads)
            await asyncio.sleep(0.1)
            w.group("starting", boot="b2", reason="rank 1 was killed")
            head = split(await read_head(reader))
            if path == "/nothing-yet":
                assert head[0] == 503
                body = await reader.readexactly(int(head[1]["content-length"]))
            else:
                body = await reader.read()
                assert head[0] == 200
                assert not body.endswith(b"0\r\n\r\n")
            assert b"rank 1 was killed" in body
            assert w.front.exchanges == set()
            assert w.log.lines[-1]["end"] == "engine_lost"
            writer.close()

    run(test)


def test_draining_lets_what_runs_end(tmp_path: Path) -> None:
    async def slow(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        await asyncio.sleep(0.5)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    async def test() -> None:
        async with world(tmp_path, slow) as w:
            asked = asyncio.create_task(w.get("/x"))
            await until(lambda: w.engine.heads)
            w.group("draining")
            assert (await w.get("/x"))[0] == 503
            assert (await asked)[0] == 200

    run(test)


def test_a_stopped_front_ends_cleanly(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer) as w:
            reader, writer = await w.say(request("POST", CHAT, b"{}"))
            _, idle = await w.connect()
            await reader.readuntil(EVENT)
            await w.front.stop()
            assert b"front_stopping" in await reader.read()
            assert not (tmp_path / "front.json").exists()
            writer.close()
            idle.close()

    run(test)


def test_status_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer) as w:
            await until(lambda: w.front.health.verdict == "ok")
            await w.get("/v1/models")
            status, _, value = await w.get("/sparkserve/status")
            assert status == 200
            assert value["requests"] == {"ok": 1}
            assert (value["verdict"], value["boot"], value["in_flight"]) == ("ok", "b1", 0)
            assert value["group"]["state"] == "up"

    run(test)


def test_counters_are_not_for_everybody(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer) as w:
            await until(lambda: w.front.health.verdict == "ok")
            # SGLang answers to any method, and to whatever begins so.
            for method, path in ((b"GET", "/metrics"), (b"POST", "/metrics"), (b"GET", "/metrics/x")):
                asked = h11.Request(method=method, target=path, headers=[(b"host", b"x")])
                foreign = w.front.own_answer(asked, path, "8.8.8.8")
                assert foreign is not None and foreign.status == 404
                assert w.front.own_answer(asked, path, "127.0.0.1") is None
            asked = h11.Request(method=b"GET", target=b"/sparkserve/status", headers=[(b"host", b"x")])
            foreign = w.front.own_answer(asked, "/sparkserve/status", "8.8.8.8")
            assert foreign is not None and foreign.status == 404

    run(test)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer) as w:
            taken = (Address("127.0.0.1", w.port),)
            other = Front(replace(w.front.config, listen=taken, front_file=tmp_path / "other.json"), Log())
            with pytest.raises(SparkserveError, match=r"HOST\.PORT"):
                await other.start()

    run(test)


def test_a_full_disk_below_run_does_not_take_the_endpoint_down(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, answer, front_file=tmp_path / "no" / "front.json") as w:
            await until(lambda: w.front.health.verdict == "ok")
            assert (await w.get("/v1/models"))[0] == 200

    run(test)
