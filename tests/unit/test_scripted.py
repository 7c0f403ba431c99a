"""The scripted engine without faults: right answers, in the shapes of SGLang."""

from __future__ import annotations

import ast
import asyncio
import math
from typing import Any

import pytest
import scripted
from scripted import Script
from scripted_values import CHAT, RIVERS, TEXTS, ask, body_of

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
