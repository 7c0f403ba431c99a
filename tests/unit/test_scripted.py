"""The scripted engine without faults: right answers, in the shapes of SGLang."""

from __future__ import annotations

import ast
import asyncio
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import openai
import pytest
import scripted
from scripted import Script
from scripted_values import CHAT, RIVERS, TEXTS, ask, body_of, counters

from sparkserve.client.client import Client


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/generate"])
def test_streamed_and_whole_are_equal(path: str) -> None:
    whole, again = ask(
        Script(), RIVERS, RIVERS, path=path, sampling_params={"max_new_tokens": 300}, max_tokens=300
    )
    (streamed,) = ask(
        Script(), RIVERS, path=path, stream=True, sampling_params={"max_new_tokens": 300}, max_tokens=300
    )
    assert whole.error is again.error is streamed.error is None
    assert whole.text == again.text == streamed.text
    assert len(whole.text.split()) > 20
    assert whole.finish == streamed.finish == "stop"
    assert whole.usage is not None
    if path == "/v1/completions":  # as SGLang: only the last event of a stream says what was cached
        assert streamed.usage is not None
    assert whole.usage == streamed.usage
    # The last token is the end itself; it has no text.
    assert [a.tokens for a in streamed.arrivals] == list(range(1, whole.usage.completion_tokens))


def test_each_prompt_has_its_own_text_and_seeds_count_only_when_sampling() -> None:
    assert len({reply.text for reply in ask(Script(), *TEXTS)}) == len(TEXTS)
    assert ask(Script(), RIVERS, seed=1)[0].text == ask(Script(), RIVERS, seed=2)[0].text
    sampled = [ask(Script(), RIVERS, temperature=1.0, seed=seed)[0].text for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]
    first, second = ask(Script(), RIVERS, RIVERS, temperature=1.0)
    assert first.text != second.text


@pytest.mark.parametrize(
    ("body", "tokens", "finish"),
    [
        ({"max_tokens": 7}, 7, "length"),
        ({"max_tokens": 500, "ignore_eos": True}, 500, "length"),
        ({"max_tokens": 500, "min_tokens": 400}, 401, "stop"),
        ({"max_completion_tokens": 3, "max_tokens": 9}, 3, "length"),
    ],
)
def test_as_many_tokens_as_asked_for(body: dict[str, Any], tokens: int, finish: str) -> None:
    for stream in (False, True):
        (reply,) = ask(Script(draft=3), RIVERS, stream=stream, **body)
        assert (reply.error, reply.finish) == (None, finish)
        assert reply.usage is not None
        assert reply.usage.completion_tokens == tokens


def test_a_stop_text_ends_the_answer_before_it() -> None:
    (free,) = ask(Script(), RIVERS)
    stop = " ".join(free.text.split()[5:7])
    for stream in (False, True):
        (reply,) = ask(Script(), RIVERS, stop=stop, stream=stream)
        assert reply.finish == "stop"
        assert free.text.startswith(reply.text)
        assert stop not in reply.text


def test_logprobs_are_a_distribution_whose_first_was_chosen() -> None:
    (chat,) = ask(Script(), RIVERS, logprobs=True, top_logprobs=20)
    for token in chat.body["choices"][0]["logprobs"]["content"]:
        top = [one["logprob"] for one in token["top_logprobs"]]
        assert token["logprob"] == top[0] == max(top)
        assert 0.9 < sum(map(math.exp, top)) < 1
        assert bytes(token["bytes"]).decode() == token["token"]
    (completion,) = ask(Script(), RIVERS, path="/v1/completions", logprobs=2, echo=True)
    logprobs = completion.body["choices"][0]["logprobs"]
    assert "".join(logprobs["tokens"]) == completion.text
    assert completion.text.startswith(RIVERS)
    assert logprobs["token_logprobs"][0] is None


def test_generate_scores_what_it_wrote_as_it_wrote_it() -> None:
    shown: dict[str, Any] = {"return_logprob": True, "top_logprobs_num": 3, "return_text_in_logprobs": True}
    (written,) = ask(Script(), RIVERS, path="/generate", **shown)
    meta = written.body["meta_info"]
    assert meta["input_token_logprobs"] == []
    assert [entry[1] for entry in meta["output_token_logprobs"]] == written.body["output_ids"]
    assert "".join(entry[2] for entry in meta["output_token_logprobs"]) == written.text
    count = len(meta["output_token_logprobs"])
    (scored,) = ask(
        Script(),
        RIVERS + written.text,
        path="/generate",
        logprob_start_len=0,
        sampling_params={"max_new_tokens": 0},
        **shown,
    )
    again = scored.body["meta_info"]["input_token_logprobs"]
    end = 1 if written.finish == "stop" else 0
    assert again[0][0] is None
    assert again[len(again) - count + end :] == meta["output_token_logprobs"][: count - end]
    assert scored.body["meta_info"]["input_top_logprobs"][0] is None


def test_the_cache_has_whole_pages_and_salts_keep_apart() -> None:
    text = "word " * 100

    async def run() -> None:
        with scripted.serve(Script(page=16)) as endpoint:
            async with Client(endpoint) as client:

                async def cached(text: str, **body: Any) -> int | None:
                    reply = await client.ask("/generate", body_of("/generate", text, body))
                    assert reply.usage is not None
                    return reply.usage.cached_tokens

                assert await cached(text) == 0
                assert await cached(text) == 96  # of 101 tokens, six pages
                assert await cached(text + "and more") == 96
                assert await cached("word " * 40 + "other") == 32
                assert await cached("word" + " word" * 95) == 80  # the last token is always computed
                assert await cached(text, cache_salt="mine") == 0
                assert await cached(text, cache_salt="mine") == 96
                assert await cached(text, return_logprob=True, logprob_start_len=20) == 16
                assert await client.get("/flush_cache") == (200, b"Cache flushed.\n")
                assert await cached(text) == 0

    asyncio.run(run())


def test_skills() -> None:
    filler = "The river runs on and on. " * 30
    (needle,) = ask(Script(), f"{filler}The secret phrase is plum-42. {filler}What is the secret phrase?")
    assert "plum-42" in needle.text
    (copied,) = ask(Script(), "Repeat this exactly: one, two\n| a | b |")
    assert copied.text == "one, two\n| a | b |"
    (chinese,) = ask(Script(), "请告诉我关于河流的事。")
    assert all(char > "\u2e80" for char in chinese.text)
    (code,) = ask(Script(), "Write an LRU cache in Python.")
    block = code.text.partition("```python\n")[2].partition("```")[0]
    (made,) = [node for node in ast.parse(block).body if isinstance(node, ast.ClassDef)]
    assert {node.name for node in made.body if isinstance(node, ast.FunctionDef)} >= {"get", "put"}
    table = Script(
        answers={"capital of France": "Paris.", "2 + 2": "4"}, answer=lambda p: "yes" if "??" in p else None
    )
    texts = [r.text for r in ask(table, "What is 2 + 2?", "The capital of France?", "really??")]
    assert texts == ["4", "Paris.", "yes"]


def test_structured_answers_fit_their_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "kind": {"enum": ["cat", "dog"]},
            "born": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 3},
            "mood": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "ok": {"type": "boolean"},
        },
        "required": ["name", "age", "kind", "born", "tags", "ok"],
        "$defs": {"tag": {"type": "string", "maxLength": 4}},
    }
    asked = {"type": "json_schema", "json_schema": {"name": "pet", "schema": schema}}
    for stream in (False, True):
        (reply,) = ask(Script(), "The dog: name is Rex, age 7.", response_format=asked, stream=stream)
        value = json.loads(reply.text)
        jsonschema.validate(value, schema)
        assert (value["name"], value["kind"]) == ("Rex", "dog")
    (reply,) = ask(Script(), RIVERS, response_format={"type": "json_object"})
    assert isinstance(json.loads(reply.text), dict)
    (reply,) = ask(Script(), RIVERS, path="/generate", sampling_params={"json_schema": json.dumps(schema)})
    jsonschema.validate(json.loads(reply.text), schema)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add_numbers",
            "description": "Sum of two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    },
]


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called_and_their_results_told(stream: bool) -> None:
    def calls(text: str, **body: Any) -> list[tuple[str, Any]]:
        (reply,) = ask(Script(), text, tools=TOOLS, stream=stream, **body)
        assert (reply.error, reply.text) == (None, "") or not reply.tool_calls
        assert reply.finish == ("tool_calls" if reply.tool_calls else "stop")
        assert all(call.id for call in reply.tool_calls)
        return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]

    paris, rome = {"city": "Paris", "unit": "fahrenheit"}, {"city": "Rome", "unit": "fahrenheit"}
    assert calls("What is the weather in Paris in fahrenheit?") == [("get_weather", paris)]
    assert calls("The weather in Paris and Rome in fahrenheit?") == [
        ("get_weather", paris),
        ("get_weather", rome),
    ]
    assert calls("Add the numbers 3 and 4.5.") == [("add_numbers", {"a": 3, "b": 4.5})]
    assert calls(RIVERS) == []
    assert calls("The weather in Paris?", tool_choice="none") == []
    assert calls(RIVERS, tool_choice="required")[0][0] == "get_weather"
    named = {"type": "function", "function": {"name": "add_numbers"}}
    assert calls(RIVERS, tool_choice=named)[0][0] == "add_numbers"
    call = {"id": "1", "type": "function", "function": {"name": "add_numbers", "arguments": "{}"}}
    told = [
        {"role": "user", "content": "Add the numbers 3 and 4."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "7"},
    ]
    (reply,) = ask(Script(), "", messages=told, tools=TOOLS, stream=stream)
    assert (reply.text, reply.tool_calls) == ("The result is 7.", ())
    known = Script(calls={"rivers": (("add_numbers", '{"a": 1}'), ("get_weather", "{}"))})
    (reply,) = ask(known, RIVERS, tools=TOOLS, stream=stream)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [
        ("add_numbers", '{"a": 1}'),
        ("get_weather", "{}"),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_apart(stream: bool) -> None:
    (reply,) = ask(Script(), RIVERS, chat_template_kwargs={"thinking": True}, stream=stream)
    assert reply.reasoning
    assert reply.text
    assert reply.reasoning not in reply.text
    assert ask(Script(), RIVERS, stream=stream)[0].reasoning == ""


def test_openai_reads_it() -> None:
    with scripted.serve(Script(answers={"Hello": "Hi."})) as endpoint:
        client = openai.OpenAI(base_url=f"{endpoint}/v1", api_key="none")
        asked: Any = [{"role": "user", "content": "Hello"}]
        whole = client.chat.completions.create(
            model="scripted", messages=asked, logprobs=True, top_logprobs=2
        )
        assert whole.choices[0].message.content == "Hi."
        assert whole.usage is not None
        assert whole.usage.prompt_tokens_details is not None
        said, usage = "", None
        for event in client.chat.completions.create(
            model="scripted", messages=asked, stream=True, stream_options={"include_usage": True}
        ):
            said += (event.choices[0].delta.content or "") if event.choices else ""
            usage = event.usage or usage
        assert said == "Hi."
        assert usage is not None
        assert usage.completion_tokens == whole.usage.completion_tokens
        tools: Any = TOOLS
        asked = [{"role": "user", "content": "The weather in Paris?"}]
        called = client.chat.completions.create(model="scripted", messages=asked, tools=tools)
        assert called.choices[0].message.tool_calls is not None
        with client.chat.completions.stream(model="scripted", messages=asked, tools=tools) as events:
            final = events.get_final_completion()
        assert final.choices[0].message.tool_calls is not None
        assert final.choices[0].message.tool_calls[0].function.name == "get_weather"
        assert client.completions.create(model="scripted", prompt="Hello").choices[0].text == "Hi."
        assert [model.id for model in client.models.list()] == ["scripted"]


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
