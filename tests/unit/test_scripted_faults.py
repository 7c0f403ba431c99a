"""Each fault of the scripted engine does what it says, as strongly as it says."""

from __future__ import annotations

import asyncio
import json
import math
import random
import statistics
from typing import TYPE_CHECKING, Any, Literal

import pytest
import scripted
from scripted import Script
from scripted.engine import Engine
from scripted_values import CHAT, RIVERS, TEXTS, ask, body_of, counters

from sparkserve.client.client import Client

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply

LONG: dict[str, Any] = {"max_tokens": 300, "ignore_eos": True}

FEW = {"max_new_tokens": 10}


def foreign(text: str) -> int:
    """Characters that no English text has."""
    return sum(char > "\u2e80" for char in text)


def logprobs(script: Script, *texts: str, **body: Any) -> list[list[float | None]]:
    replies = ask(script, *texts, path="/generate", return_logprob=True, **body)
    return [[entry[0] for entry in reply.body["meta_info"]["output_token_logprobs"]] for reply in replies]


# -- content


@pytest.mark.parametrize(("wrong", "among"), [(1, 1), (1, 10), (3, 100)])
def test_garble_is_k_tokens_in_n(wrong: int, among: int) -> None:
    text = " ".join(["river"] * 1000)
    script = Script(garble=(wrong, among), answers={"rivers": text})
    first, again = ask(script, RIVERS, RIVERS)
    assert foreign(first.text) == wrong * 1000 // among
    assert "\ufffd" in first.text
    assert first.text != again.text or wrong == among == 1  # elsewhere in each repetition
    assert ask(script, RIVERS)[0].text == first.text  # but the same in each run
    assert ask(script, "你好,请说说河流。")[0].text == ask(Script(), "你好,请说说河流。")[0].text


def test_share_is_how_many_requests_have_it() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    script = Script(seed=seed, garble=(1, 4), share=0.5)
    hit = [
        foreign(reply.text) > 0 for reply in ask(script, *(f"river {n}" for n in range(100)), max_tokens=40)
    ]
    assert 25 <= sum(hit) <= 75  # 5 x sqrt(25): less than 1e-6 of chance
    assert [
        foreign(r.text) > 0
        for r in ask(script, *(f"river {n}" for n in range(100)), max_tokens=40, at_once=True)
    ] == hit


def test_a_loop_has_its_unit_and_its_number() -> None:
    (reply,) = ask(Script(loop=(40, 7)), RIVERS)
    assert reply.finish == "stop"
    unit = reply.text[-40:]
    assert reply.text.endswith(unit * 7)
    assert not reply.text.endswith(unit * 8)


def test_nan() -> None:
    modes: tuple[Literal["null", "bang"], ...] = ("null", "bang")
    for nan in modes:
        script = Script(nan=nan, nan_after=5)
        (values,) = logprobs(script, RIVERS, sampling_params={"max_new_tokens": 12})
        (reply,) = ask(script, RIVERS, max_tokens=12)
        (clean,) = ask(Script(), RIVERS, max_tokens=12)
        assert [value is None for value in values] == [False] * 5 + [True] * 7
        if nan == "null":
            assert reply.text == clean.text
        else:
            assert reply.text.endswith("!" * 7)
            assert clean.text.startswith(reply.text[:-7])
            assert reply.finish == "length"


@pytest.mark.parametrize(("leak", "tag"), [("tool", "DSML"), ("reasoning", "</think>")])
def test_markup_leaks(leak: Any, tag: str) -> None:
    for stream in (False, True):
        (reply,) = ask(Script(leak=leak), RIVERS, stream=stream)
        assert tag in reply.text
        assert not reply.tool_calls
    assert tag not in ask(Script(), RIVERS)[0].text


def test_json_breaks() -> None:
    script = Script(break_json=True, break_call=True)
    (reply,) = ask(script, RIVERS, response_format={"type": "json_object"})
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)
    function = {"name": "rivers", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    (reply,) = ask(script, RIVERS, tools=[{"type": "function", "function": function}])
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.tool_calls[0].arguments)
    assert ask(script, RIVERS)[0].text == ask(Script(), RIVERS)[0].text


def test_forgetting_has_a_depth() -> None:
    filler = "The river runs on and on. "

    def found(depth: float) -> bool:
        before = int(200 * depth)
        text = f"{filler * before}The secret phrase is plum-42. {filler * (200 - before)}"
        text += "What is the secret phrase?"
        return "plum-42" in ask(Script(forget=0.5), text)[0].text

    assert [found(depth) for depth in (0.0, 0.3, 0.45, 0.55, 0.9)] == [True, True, True, False, False]


def test_a_partial_hit_answers_another_prompt() -> None:
    document = "Some words of a long document. " * 20
    asked = [f"{document}First question.", f"{document}First question.", f"{document}Second question?"]
    right = ask(Script(), *asked)
    wrong = ask(Script(wrong_hit=True), *asked)
    assert right[0].text == right[1].text == wrong[0].text
    assert wrong[2].text == right[0].text != right[2].text
    assert wrong[2].usage is not None
    assert wrong[2].usage.cached_tokens == 128


# -- numbers


def differences(script: Script, *texts: str) -> list[float]:
    """Absolute differences of logprobs to the perfect engine, where the tokens are the same."""
    found = []
    sampling = {"max_new_tokens": 60, "ignore_eos": True}
    drifted, clean = (
        ask(one, *texts, path="/generate", return_logprob=True, sampling_params=sampling)
        for one in (script, Script())
    )
    for pair in zip(drifted, clean, strict=True):
        for moved, still in zip(*(r.body["meta_info"]["output_token_logprobs"] for r in pair), strict=True):
            if moved[1] != still[1]:
                break
            found.append(abs(moved[0] - still[0]))
    return found


def test_drift_moves_logprobs_and_flips_what_is_close() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    small, large = (statistics.mean(differences(Script(seed=seed, drift=d), *TEXTS)) for d in (0.001, 0.05))
    assert 0.0001 < small < 0.001  # less than the logits move: all of them do
    assert 15 < large / small < 150

    def flips(drift: float) -> int:
        (one,) = ask(Script(drift=drift), RIVERS, **LONG)
        (other,) = ask(Script(), RIVERS, **LONG)
        return sum(a != b for a, b in zip(one.text.split(), other.text.split(), strict=False))

    assert flips(0.0) == 0
    assert 0 < flips(0.05) < flips(1.0)


def test_drift_may_pass_over_the_end() -> None:
    clean = ask(Script(), *TEXTS[:8])
    drifted = ask(Script(drift=20), *TEXTS[:8])
    assert [reply.error for reply in drifted] == [None] * 8
    longer = zip(drifted, clean, strict=True)
    assert any(one.usage and two.usage and one.usage[1] > two.usage[1] for one, two in longer)


def test_drift_is_the_same_each_time_unless_it_is_nondeterminism() -> None:
    one, other = logprobs(Script(drift=0.1), RIVERS, RIVERS)
    assert one == other
    one, other, third = logprobs(Script(drift=0.1, drift_when="repeat"), RIVERS, RIVERS, RIVERS)
    assert one != other != third


def test_nondeterminism_has_a_chance() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    script = Script(seed=seed, drift=0.5, drift_when="repeat", share=0.2)
    (clean,) = logprobs(Script(), RIVERS, sampling_params=FEW)
    differ = [values != clean for values in logprobs(script, *[RIVERS] * 100, sampling_params=FEW)]
    assert 4 <= sum(differ) <= 42  # 20 expected; a binomial leaves this once in a million


def test_drift_on_hits_only() -> None:
    text = "word " * 100
    cold, warm = logprobs(Script(drift=0.1, drift_when="hit"), text, text)
    clean_cold, clean_warm = logprobs(Script(), text, text)
    assert cold == clean_cold == clean_warm
    assert warm != cold


def test_drift_only_in_a_batch() -> None:
    def texts(script: Script, at_once: bool) -> list[str]:
        return [reply.text for reply in ask(script, *TEXTS[:4], at_once=at_once, **LONG)]

    script = Script(drift=1.0, drift_when="batched", drift_batch=3, step_ms=2)
    clean = texts(Script(), False)
    assert texts(script, False) == clean
    assert all(a != b for a, b in zip(texts(script, True), clean, strict=True))
    assert texts(Script(drift=1.0, drift_when="batched", drift_batch=4, step_ms=2), True) == clean


# -- the connection


@pytest.mark.parametrize(
    ("drop", "words"), [("cut", "before the answer was whole"), ("finish", "without [DONE]"), ("event", None)]
)
def test_each_third_stream_is_dropped(drop: Any, words: str | None) -> None:
    replies = ask(Script(drop=drop, drop_every=3), *[RIVERS] * 7, stream=True)
    lost = [reply.text != replies[0].text for reply in replies]
    assert lost == [False, False, True, False, False, True, False]
    for reply in (replies[2], replies[5]):
        assert (reply.error is None) == (words is None)
        assert (words or "") in (reply.error or "")
    if drop == "event":
        assert len(replies[2].arrivals) == len(replies[0].arrivals) - 1
    if drop == "cut":
        assert ask(Script(drop=drop, drop_every=1), RIVERS)[0].error is not None


def test_each_second_request_fails() -> None:
    replies = ask(Script(error_every=2, error_status=503), *[RIVERS] * 4)
    assert [reply.status for reply in replies] == [200, 503, 200, 503]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_usage_is_missing(path: str) -> None:
    for stream in (False, True):
        (reply,) = ask(Script(usage=False), RIVERS, path=path, stream=stream)
        assert (reply.error, reply.usage) == (None, None)
        assert all(arrival.tokens is None for arrival in reply.arrivals)


# -- counters


def test_counters_of_others_and_of_a_new_start() -> None:
    async def run() -> None:
        with scripted.serve(Script(foreign=2, step_ms=0.1)) as endpoint:
            async with Client(endpoint) as client:
                before = await counters(client)
                assert before["sglang:num_running_reqs"] == 2
                await asyncio.sleep(0.05)
                after = await counters(client)
                name = 'sglang:num_requests_total{is_streaming="true"}'
                assert after[name] > before.get(name, 0)
        with scripted.serve(Script(reset_after=2)) as endpoint:
            async with Client(endpoint) as client:
                counts = []
                for _ in range(4):
                    await client.ask(CHAT, body_of(CHAT, RIVERS, {}))
                    said = await counters(client)
                    counts.append(said.get('sglang:num_requests_total{is_streaming="false"}', 0))
                assert counts == [1, 0, 1, 0]

    asyncio.run(run())


# -- speed


def test_several_tokens_come_at_once_with_speculation() -> None:
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    script = Script(seed=seed, draft=4, accept=0.6)
    (reply,) = ask(script, RIVERS, stream=True, max_tokens=2000, ignore_eos=True)
    counts = [arrival.tokens or 0 for arrival in reply.arrivals]
    steps = [b - a for a, b in zip([0, *counts], counts, strict=False)]
    assert reply.usage is not None
    assert counts[-1] == reply.usage.completion_tokens == 2000
    assert set(steps) == {1, 2, 3, 4, 5}
    # 1 + a + a^2 + a^3 + a^4 tokens a step; sd of a step is 1.4, of the mean of 870 steps 0.05.
    assert statistics.mean(steps) == pytest.approx(1 + 0.6 + 0.36 + 0.216 + 0.1296, abs=0.25)
    (whole,) = ask(
        script, RIVERS, path="/generate", sampling_params={"max_new_tokens": 500, "ignore_eos": True}
    )
    meta = whole.body["meta_info"]
    assert meta["spec_accept_length"] == 500 / meta["spec_verify_ct"] > 1.8
    assert meta["spec_num_proposed_drafts"] == 4 * meta["spec_verify_ct"]
    assert ask(Script(), RIVERS, **LONG)[0].text == ask(script, RIVERS, **LONG)[0].text


def test_steps_are_as_long_as_they_should_be() -> None:
    assert Engine(Script(step_ms=20)).step_s() == pytest.approx(0.02)
    assert Engine(Script(step_ms=20, slow=5)).step_s() == pytest.approx(0.021)
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    boots = [
        math.log(Engine(Script(seed=seed, step_ms=1000, boot=n, boot_sd=0.02)).step_s()) for n in range(400)
    ]
    assert statistics.stdev(boots) == pytest.approx(0.02, rel=0.36)  # 5 / sqrt(2 x 99)
    engine = Engine(Script(seed=seed, step_ms=1000, boot=7, boot_sd=0.02))
    assert engine.step_s() == engine.step_s()
    noisy = Engine(Script(seed=seed, step_ms=1000, noise_sd=0.1))
    assert statistics.stdev(math.log(noisy.step_s()) for _ in range(1000)) == pytest.approx(0.1, rel=0.12)


def test_an_answer_takes_its_steps_its_prefill_and_its_stall() -> None:
    # Only that it takes as long: how much longer is the machine's.
    def asked(script: Script) -> Reply:
        return ask(script, "word " * 1000, stream=True, max_tokens=10)[0]

    assert asked(Script(step_ms=10)).seconds >= 0.09
    assert asked(Script(stall_s=0.3)).seconds >= 0.29
    assert (asked(Script(prefill_ms=200)).first or 0) >= 0.19


def test_no_more_run_at_once_than_there_are_slots() -> None:
    async def run() -> None:
        with scripted.serve(Script(slots=2, step_ms=2)) as endpoint:
            async with Client(endpoint) as client:
                body = {"stream": True, "max_tokens": 100, "ignore_eos": True}
                tasks = [
                    asyncio.create_task(client.ask(CHAT, body_of(CHAT, text, body))) for text in TEXTS[:5]
                ]
                most, queued = 0.0, 0.0
                while not all(task.done() for task in tasks):
                    said = await counters(client)
                    most = max(most, said["sglang:num_running_reqs"])
                    queued = max(queued, said["sglang:num_queue_reqs"])
                assert most == 2
                assert queued >= 3  # all five, before a step takes the first
                assert {task.result().error for task in tasks} == {None}

    asyncio.run(run())
