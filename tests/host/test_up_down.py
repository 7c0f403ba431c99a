"""SGLang with the demo model, from this checkout's files to an answer, and away again.

Costs three starts, 2 minutes once the closure is built. Needs Nix and root. It works in a copy of the
checkout with a port and a state folder of its own, so an engine of yours goes on.
"""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai
import pytest

from sparkserve.metrics import scrape

if TYPE_CHECKING:
    from engine_copy import Copy


def engines(port: int) -> list[str]:
    """Pids of bubblewraps and engines of the fleet on `port`."""
    found = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = cmdline.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--model-path" in words and str(port).encode() in words:
            found.append(cmdline.parent.name)
    return found


def test_up_and_down(copy: Copy) -> None:
    code, out = copy.run("up", "--json")
    assert code == 0
    first = json.loads(out)
    assert copy.json("smoke")["answer"] == "The capital of France is Paris."

    start = time.monotonic()
    again = copy.json("up")
    assert again["already_running"] and again["pid"] == first["pid"]
    assert time.monotonic() - start < 15

    node = copy.json("status")["nodes"][0]
    assert node["state"] == "ready"
    assert 1e9 < node["pss_bytes"] < 4e9

    client = openai.OpenAI(base_url=f"{first['endpoint']}/v1", api_key="none")
    request: Any = {
        "model": first["model"],
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 32,
    }
    whole = client.chat.completions.create(**request)
    assert whole.choices[0].message.content == "The capital of France is Paris."
    parts = client.chat.completions.create(**request, stream=True)
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == "The capital of France is Paris."
    assert [model.id for model in client.models.list()] == [first["model"]]

    # Each ended the server before patches/sglang-refuses-unknown-tokens.patch. The vocabulary: 49152.
    completions: list[dict[str, Any]] = [
        {"prompt": [49152, 5]},
        {"prompt": [-1]},
        {"prompt": "hi", "logprobs": 49153},
        {"prompt": "hi", "extra_body": {"min_tokens": 3, "stop_token_ids": [49152]}},
    ]
    for bad in completions:
        with pytest.raises(openai.BadRequestError):
            client.completions.create(**{"model": first["model"], "max_tokens": 5, **bad})
    last = client.completions.create(model=first["model"], prompt=[49151], max_tokens=2)
    assert last.usage is not None and last.usage.completion_tokens == 2

    counters_are_what_was_asked(client, request)

    assert copy.run("down")[0] == 0
    assert engines(copy.port) == []


def counters_are_what_was_asked(client: openai.OpenAI, request: dict[str, Any]) -> None:
    """Tokens in /metrics are those of the answers' usage; the names that tests/unit has are all there."""

    def read() -> str:
        url = str(client.base_url).removesuffix("v1/") + "metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())

    before = read()
    usages = [client.chat.completions.create(**{**request, "max_tokens": n}).usage for n in (5, 1)]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    usages += [part.usage for part in client.chat.completions.create(**{**request, **options}) if part.usage]
    counted = [usage for usage in usages if usage is not None]
    assert len(counted) == 3
    after = read()
    grown = scrape.growth(scrape.read(before), scrape.read(after))
    for kind, expected in (
        ("prompt", sum(usage.prompt_tokens for usage in counted)),
        ("generation", sum(usage.completion_tokens for usage in counted)),
    ):
        assert (
            sum(n for name, n in grown.items() if name.startswith(f"sglang:{kind}_tokens_total{{"))
            == expected
        )
    recorded = scrape.read(Path(__file__).parents[1].joinpath("unit/sglang.prom").read_text())
    assert names(recorded) - names(scrape.read(after)) == set()


def names(samples: dict[str, float]) -> set[str]:
    """The names without labels, except of what happened in the recording only: JSON answers."""
    return {name.partition("{")[0] for name in samples} - {"sglang:num_so_requests_total"}


def test_ctrl_c_while_it_loads(copy: Copy) -> None:
    child = copy.start("up")
    end = time.monotonic() + 120
    while not engines(copy.port) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(5)  # into the imports, when the engine has installed no signal handler yet
    assert engines(copy.port) != []
    os.killpg(child.pid, signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == 130
    assert engines(copy.port) == []
    assert copy.run("status")[0] == 52


def test_kill_9_of_the_launcher(copy: Copy) -> None:
    pid = copy.json("up")["pid"]
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    assert copy.json("status")["nodes"][0]["state"] == "dead"
    assert copy.run("down")[0] == 0
    assert engines(copy.port) == []
