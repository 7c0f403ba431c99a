"""Samples of a quiet engine: what others do is seen, listed, and repeated until it is too much."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import scripted
from scripted import Script

from sparkserve.bench import asker, counters, run
from sparkserve.bench.purity import Limits
from sparkserve.bench.settings import Settings
from sparkserve.client.client import Client
from sparkserve.client.reply import Arrival, Reply, Usage
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.bench.results import Boot

TWO = Settings(cases=("prose",), streams=(2,), tokens=40, min=3, max=3)
LIMITS = Limits(gap_s=0.0, idle_s=5.0, look_s=0.02)


def measure(
    endpoint: str,
    settings: Settings = TWO,
    limits: Limits = LIMITS,
    slow: Callable[[], str | None] = lambda: None,
    changed: Callable[[Boot], object] = lambda boot: None,
) -> Boot:
    async def work() -> Boot:
        async with Client(endpoint) as client:
            return await run.measure_boot(
                client, "scripted", settings, limits=limits, slow=slow, changed=changed
            )

    return asyncio.run(work())


def with_others(monkeypatch: pytest.MonkeyPatch, times: int, tokens: int) -> None:
    """From now on somebody asks beside each of our first `times` waves of 40 tokens."""
    chat = asker.Asker.chat
    theirs: list[asyncio.Task[Reply]] = []
    body = {"model": "scripted", "prompt": "me too", "max_tokens": tokens, "ignore_eos": True}

    async def beside(asks: asker.Asker, *args: Any) -> list[Reply]:
        if len(theirs) < times:
            theirs.append(asyncio.create_task(asks.client.ask("/v1/completions", body)))
        return await chat(asks, *args)

    monkeypatch.setattr(asker.Asker, "chat", beside)


@pytest.mark.parametrize("tokens", [1, 60])
def test_a_request_of_others_spoils_a_sample(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue I05: three requests at c=2. Short ones end within ours, long ones after."""
    with_others(monkeypatch, 1, tokens)
    with scripted.serve(Script(step_ms=2)) as endpoint:
        boot = measure(endpoint, TWO.model_copy(update={"warm_up": False}))
    assert [lost.point for lost in boot.discarded] == ["prose-c2"]
    assert "others" in boot.discarded[0].why or "ran at once" in boot.discarded[0].why
    samples = boot.points["prose-c2"].samples
    assert [sample.round for sample in samples] == [0, 1, 2]
    assert all(sample.completion_tokens == 80 for sample in samples)
    # Of the clean samples only.
    assert sum(boot.counters[name] for name in boot.counters if "num_requests_total" in name) == 6


def test_others_that_stay_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with_others(monkeypatch, 100, 1)
    kept: list[Boot] = []
    with scripted.serve(Script(step_ms=2)) as endpoint, pytest.raises(SparkserveError) as raised:
        measure(endpoint, changed=kept.append)
    assert raised.value.id == "BENCH.FOREIGN"
    assert raised.value.where == "prose-c2"
    assert len(kept[-1].discarded) == 3  # whoever reads the file sees why it ends


def test_more_running_than_ours_is_seen_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of others that has not ended counts nowhere yet; the gauge of running ones has it."""
    gauges = iter([2.0, 3.0, 2.0])

    async def running(_: Client) -> float:
        return next(gauges, 2.0)

    monkeypatch.setattr(counters, "running", running)
    with scripted.serve(Script(step_ms=5)) as endpoint:
        boot = measure(endpoint)
    assert [lost.why for lost in boot.discarded] == ["3 requests ran at once, at most 2 of them ours"]


def test_an_engine_that_is_never_idle_is_not_measured() -> None:
    with scripted.serve(Script(foreign=1)) as endpoint, pytest.raises(SparkserveError) as raised:
        measure(endpoint, limits=Limits(gap_s=0.0, idle_s=0.1))
    assert raised.value.id == "BENCH.FOREIGN"
    assert "1 requests" in raised.value.found


def test_a_quiet_engine_loses_nothing() -> None:
    with scripted.serve(Script(step_ms=1)) as endpoint:
        boot = measure(endpoint)
    assert boot.discarded == ()
    assert boot.notes == ()


def test_a_throttled_machine_is_tried_again_and_then_told() -> None:
    """A laptop that always throttles has a speed too."""
    said = iter([None, "spark-1: throttled"] * 5 + [None] * 20)  # asked before and after each sample
    with scripted.serve(Script(step_ms=1)) as endpoint:
        boot = measure(endpoint, slow=lambda: next(said))
    assert [lost.why for lost in boot.discarded] == ["spark-1: throttled"] * 3
    assert len(boot.points["prose-c2"].samples) == 3
    (note,) = boot.notes
    assert note.startswith("2 samples are of a slowed machine") and "spark-1: throttled" in note


def test_another_engine_in_the_middle_is_an_error() -> None:
    with (
        scripted.serve(Script(step_ms=1, reset_after=7)) as endpoint,
        pytest.raises(SparkserveError) as raised,
    ):
        measure(endpoint)
    assert raised.value.id == "ENGINE.STATE"
    assert "started again" in raised.value.found


def test_failed_requests_are_repeated_then_an_error() -> None:
    with scripted.serve(Script(step_ms=1, error_every=7)) as endpoint:
        boot = measure(endpoint)
    assert len(boot.discarded) == 1
    assert "1 of 2 requests failed" in boot.discarded[0].why
    with (
        scripted.serve(Script(step_ms=1, drop="cut", drop_every=1)) as endpoint,
        pytest.raises(SparkserveError) as raised,
    ):
        measure(endpoint, TWO.model_copy(update={"warm_up": False}))
    assert raised.value.id == "BENCH.REQUEST"


def test_an_endpoint_that_is_gone() -> None:
    with scripted.serve(Script()) as endpoint:
        pass
    with pytest.raises(SparkserveError) as raised:
        measure(endpoint)
    assert raised.value.id == "BENCH.REQUEST"


class Strict:
    """An engine that refuses what it does not know, one thing at a time, as strict ones do."""

    endpoint = "http://127.0.0.1:1"

    def __init__(self, *unknown: str) -> None:
        self._unknown = unknown
        self.bodies: list[dict[str, Any]] = []

    async def ask(self, path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Reply:
        for name in self._unknown:
            if name in body or name in body.get("stream_options", {}):
                return Reply(400, f"HTTP 400: unknown field {name}", 0.0)
        self.bodies.append(body)
        return Reply(200, None, 1.0, usage=Usage(5, 7), arrivals=(Arrival(0.5, "a", None),))


def test_what_an_endpoint_refuses_is_left_out_and_told() -> None:
    engine = Strict("min_tokens", "continuous_usage_stats", "cache_salt")
    asks = asker.Asker(engine, "m")  # type: ignore[arg-type]
    replies = asyncio.run(asks.chat(["one", "two"], 9))
    assert [reply.status for reply in replies] == [200, 200]
    for body in engine.bodies:
        assert body["max_tokens"] == 9
        assert not {"min_tokens", "ignore_eos", "cache_salt"} & set(body)
        assert body["stream_options"] == {"include_usage": True}
        assert body["chat_template_kwargs"]  # nobody complained of it
    assert len(asks.notes) == 3
    assert any("lengths are not forced" in note for note in asks.notes)


def test_an_endpoint_that_refuses_everything_has_an_end() -> None:
    asks = asker.Asker(Strict("model"), "m")  # type: ignore[arg-type]
    assert asyncio.run(asks.chat(["one"], 9))[0].status == 400


def test_no_two_waves_share_a_salt() -> None:
    """Or the second of two runs would find its prompts in the prefix cache."""
    engine = Strict()
    asks = asker.Asker(engine, "m")  # type: ignore[arg-type]
    for _ in range(2):
        asyncio.run(asks.chat(["one", "two"], 9))
    salts = [body["cache_salt"] for body in engine.bodies]
    assert salts[0] == salts[1] != salts[2] == salts[3]


def test_sampled_requests_have_seeds_of_their_own() -> None:
    engine = Strict()
    asks = asker.Asker(engine, "m")  # type: ignore[arg-type]
    asyncio.run(asks.chat(["one", "two"], 9, [1000, 1001]))
    assert [(body["temperature"], body["seed"]) for body in engine.bodies] == [(1.0, 1000), (1.0, 1001)]
