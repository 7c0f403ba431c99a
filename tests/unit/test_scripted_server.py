"""The scripted engine as a server: counters, clients that leave, what it refuses, and by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scripted
from scripted import Script
from scripted_values import CHAT, RIVERS, body_of, counters

from sparkserve.client.client import Client


def test_counters_grow_by_what_was_used() -> None:
    async def run() -> None:
        with scripted.serve(Script(draft=4)) as endpoint:
            async with Client(endpoint) as client:
                for _ in range(2):
                    reply = await client.ask(
                        CHAT, body_of(CHAT, "word " * 50, {"stream": True, "max_tokens": 30})
                    )
                said = await counters(client)
        assert reply.usage is not None
        prompt = reply.usage.prompt_tokens
        stream = '{is_streaming="true"}'
        assert said[f"sglang:prompt_tokens_total{stream}"] == 2 * prompt
        assert said[f"sglang:generation_tokens_total{stream}"] == 60
        assert said[f"sglang:num_requests_total{stream}"] == 2
        assert said['sglang:cached_tokens_total{cache_source="device"}'] == reply.usage.cached_tokens
        assert said["sglang:num_running_reqs"] == 0
        assert 60 / said["sglang:spec_verify_calls_total"] > 1
        assert said[f"sglang:e2e_request_latency_seconds_count{stream}"] == 2

    asyncio.run(run())


def test_a_client_that_leaves_is_forgotten() -> None:
    async def run() -> None:
        with scripted.serve(Script(step_ms=5)) as endpoint:
            async with Client(endpoint) as client:
                for stream in (True, False):
                    body = body_of(
                        CHAT, RIVERS, {"stream": stream, "ignore_eos": True, "max_tokens": 100_000}
                    )
                    task = asyncio.create_task(client.ask(CHAT, body))
                    while (await counters(client))["sglang:num_running_reqs"] != 1:
                        await asyncio.sleep(0.01)
                    task.cancel()
                    while (await counters(client))["sglang:num_running_reqs"] != 0:
                        await asyncio.sleep(0.01)
                assert (await counters(client))["sglang:num_aborted_requests_total"] == 2

    asyncio.run(run())


def test_what_else_it_answers() -> None:
    async def run() -> None:
        with scripted.serve() as endpoint:
            async with Client(endpoint) as client:
                assert (await client.get("/health"))[0] == 200
                assert json.loads((await client.get("/get_model_info"))[1])["model_path"] == "scripted"
                assert json.loads((await client.get("/get_server_info"))[1])["version"] == "0.5.23"
                assert (await client.get("/nothing"))[0] == 404
                counted = (await client.ask("/tokenize", {"prompt": "one two, 世界"})).body
                assert counted["count"] == len(counted["tokens"]) == 6
                ids = await client.ask("/generate", {"input_ids": counted["tokens"]})
                text = await client.ask("/generate", {"text": "one two, 世界"})
                assert ids.usage is not None
                assert text.usage is not None
                assert ids.usage.prompt_tokens == text.usage.prompt_tokens == 6

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": []}),
        (CHAT, {"messages": "x"}),
        (CHAT, {"messages": [{"role": "user", "content": "a"}], "n": 2}),
        (CHAT, {"messages": [{"role": "user", "content": "a"}], "max_tokens": -1}),
        (CHAT, {"messages": [{"role": "user", "content": "a"}], "max_tokens": 10**9}),
        ("/generate", {"sampling_params": {}}),
        ("/v1/completions", {"prompt": ["a", "b"]}),
    ],
)
def test_bad_requests_are_refused(path: str, body: dict[str, Any]) -> None:
    async def run() -> None:
        with scripted.serve() as endpoint:
            async with Client(endpoint) as client:
                reply = await client.ask(path, body)
                assert reply.status == 400
                assert reply.error
                assert (await client.ask(CHAT, body_of(CHAT, RIVERS, {}))).error is None

    asyncio.run(run())


def test_by_hand() -> None:
    command = [
        sys.executable,
        "-m",
        "scripted",
        "--port",
        "0",
        "--garble",
        "1/2",
        "--step-ms",
        "0",
        "--no-usage",
    ]
    folder = Path(scripted.__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()

        async def run() -> None:
            async with Client(endpoint) as client:
                reply = await client.ask(CHAT, body_of(CHAT, RIVERS, {}))
                assert reply.usage is None
                assert "\ufffd" in reply.text

        try:
            asyncio.run(run())
        finally:
            process.terminate()
    assert process.returncode in (0, -15)
