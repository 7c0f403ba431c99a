"""Each mode against the scripted engine: what it sends, and what it says of an engine that is known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import scripted
from scripted import Script

from sparkserve.bench import asker, modes, run
from sparkserve.bench.purity import Limits
from sparkserve.bench.settings import Settings
from sparkserve.client.client import Client
from sparkserve.client.reply import Arrival, Reply, Usage

if TYPE_CHECKING:
    from sparkserve.bench.results import Boot, Point

LIMITS = Limits(gap_s=0.0, idle_s=10.0, look_s=0.05)


def measure(script: Script, settings: Settings) -> Boot:
    async def work(endpoint: str) -> Boot:
        async with Client(endpoint) as client:
            return await run.measure_boot(client, "scripted", settings, limits=LIMITS)

    with scripted.serve(script) as endpoint:
        return asyncio.run(work(endpoint))


def values(point: Point, metric: str) -> list[float]:
    return [sample.metrics[metric] for sample in point.samples]


def test_decode_has_exact_lengths_and_cold_prompts() -> None:
    """34 rounds of one stream: after 32 the prompts come again, and still none is in the prefix cache."""
    settings = Settings(cases=("prose",), streams=(1,), tokens=6, min=34, max=34)
    point = measure(Script(), settings).points["prose-c1"]
    assert [sample.round for sample in point.samples] == list(range(34))
    assert all(sample.completion_tokens == 6 for sample in point.samples)
    assert values(point, "hit_rate") == [0.0] * 34
    assert values(point, "tokens_per_step") == [1.0] * 34
    assert len(point.prompts) == 32
    first = [sample.outputs for sample in point.samples]
    assert first[0] == first[32] != first[1]  # by greedy engines: the same text for the same prompt


def test_decode_of_a_speculating_engine() -> None:
    settings = Settings(cases=("code",), streams=(2,), tokens=60, min=3, max=3)
    point = measure(Script(draft=4, accept=0.7, step_ms=1), settings).points["code-c2"]
    # 0.7 + 0.7^2 + 0.7^3 + 0.7^4 = 1.77 accepted, and one more. Drawn by the script's seed: always the same.
    assert sum(values(point, "tokens_per_step")) / 3 == pytest.approx(2.77, rel=0.2)


def test_streams_of_a_wave_have_distinct_answers() -> None:
    settings = Settings(cases=("json",), streams=(16,), tokens=8, min=2, max=2)
    for sample in measure(Script(), settings).points["json-c16"].samples:
        assert len(set(sample.outputs)) == 16


def test_sampled_sends_enough_requests_with_seeds_of_their_own() -> None:
    settings = Settings(mode="sampled", cases=("chat",), streams=(1, 4), tokens=8, min=2, max=2)
    points = measure(Script(), settings).points
    for streams, name in ((1, "sampled-chat-c1"), (4, "sampled-chat-c4")):
        outputs = [output for sample in points[name].samples for output in sample.outputs]
        assert len(outputs) >= 32
        assert len(outputs) == streams * len(points[name].samples)
    # Not the answers at temperature 0 to the same prompts.
    greedy = measure(Script(), Settings(cases=("chat",), streams=(4,), tokens=8, min=2, max=2))
    for one, other in zip(greedy.points["chat-c4"].samples, points["sampled-chat-c4"].samples, strict=False):
        assert not set(one.outputs) & set(other.outputs)
    # The same seed is of the same request in each run.
    again = measure(Script(), settings).points
    assert [s.outputs for s in again["sampled-chat-c4"].samples] == [
        s.outputs for s in points["sampled-chat-c4"].samples
    ]


def test_prefill_has_exact_lengths_and_tells_texts_apart() -> None:
    settings = Settings(mode="prefill", sizes=(700,), texts=("real", "novel", "filler"), min=2, max=2)
    boot = measure(Script(), settings)
    assert {name: point.text for name, point in boot.points.items()} == {
        "real-700-c1": "real",
        "novel-700-c1": "novel",
        "filler-700-c1": "filler",
    }
    for point in boot.points.values():
        assert [sample.prompt_tokens for sample in point.samples] == [700, 700]
        assert [sample.completion_tokens for sample in point.samples] == [1, 1]
        assert values(point, "hit_rate") == [0.0, 0.0]
        assert len(set(point.prompts)) == 2
        for sample in point.samples:
            assert sample.metrics["prefill_tps"] == pytest.approx(700 / sample.metrics["ttft_s"])
    ratios = {note.split()[0]: float(note.split(": ")[1].split()[0]) for note in boot.notes}
    assert ratios["real"] > 0.9 and ratios["novel"] > 0.9 and ratios["filler"] < 0.1


def test_prefix_tells_cold_from_warm() -> None:
    """By usage: 704 of 720 tokens are whole pages before the last token."""
    boot = measure(Script(), Settings(mode="prefix", sizes=(720,), min=2, max=2))
    cold, warm = boot.points["cold-real-720-c1"], boot.points["warm-real-720-c1"]
    assert values(warm, "hit_rate") == [pytest.approx(704 / 720)] * 2
    assert all("prefill_tps" in sample.metrics for sample in cold.samples)
    assert cold.prompts == warm.prompts and len(cold.prompts) == 2


def test_prefix_without_a_cache_is_cold() -> None:
    boot = measure(Script(page=100_000), Settings(mode="prefix", sizes=(720,), min=1, max=1))
    assert values(boot.points["warm-real-720-c1"], "hit_rate") == [0.0]


def test_admission_of_documents_that_run_together() -> None:
    settings = Settings(mode="admission", sizes=(300,), streams=(4,), tokens=40, min=1, max=1)
    boot = measure(Script(step_ms=4), settings)
    (sample,) = boot.points["admission-real-300-c4"].samples
    assert sample.prompt_tokens == 1200 and sample.failed == 0
    assert not any("not admitted" in note for note in boot.notes)


def test_admission_tells_what_failed() -> None:
    settings = Settings(mode="admission", sizes=(300,), streams=(4,), tokens=10, min=1, max=1)
    # The 8th request is the sample's last: the warm-up has 4.
    boot = measure(Script(step_ms=4, error_every=8), settings)
    (sample,) = boot.points["admission-real-300-c4"].samples
    assert sample.failed == 1
    assert any("1 of 4 failed" in note for note in boot.notes)


def test_mixed_has_three_points_of_each_sample() -> None:
    settings = Settings(mode="mixed", sizes=(600,), streams=(2,), tokens=60, min=2, max=2)
    boot = measure(Script(step_ms=10, prefill_ms=300), settings)
    assert set(boot.points) == {f"{phase}-real-600-c2" for phase in ("before", "during", "after")}
    assert all("prefill_tps" in sample.metrics for sample in boot.points["during-real-600-c2"].samples)
    assert boot.discarded == ()  # the prompt is ours, though it makes three


def test_mixed_shows_what_streams_wait_for_a_prompt() -> None:
    """Two streams get a token each 10 ms. At 0.305 s a prompt of 600 tokens holds them up for 0.5 s."""
    settings = Settings(mode="mixed", sizes=(600,), streams=(2,), tokens=100)
    (task,) = asyncio.run(modes.tasks(settings, asker.Asker(Client("http://127.0.0.1:1"), "m")))
    times = [0.01 * number + (0.5 if number > 30 else 0.0) for number in range(1, 101)]
    stream = Reply(
        200,
        None,
        times[-1],
        usage=Usage(10, 100),
        arrivals=tuple(Arrival(at, "a", number + 1) for number, at in enumerate(times)),
    )
    prompt = Reply(200, None, 0.5, usage=Usage(600, 1), arrivals=(Arrival(0.5, "a", 1),), started=0.305)
    found = task.measure([stream, stream, prompt], {"sglang:num_requests_total": 3.0}, {})
    before, during, after = (found[f"{phase}-real-600"] for phase in ("before", "during", "after"))
    # 29 steps from 0.01 to 0.30 s, then 5 ms of a gap of 510 ms: 29.01 tokens in 295 ms.
    assert before["step_ms"] == pytest.approx(295 / (29 + 5 / 510))
    assert during["step_ms"] == pytest.approx(510)  # within that gap only
    assert during["ttft_s"] == 0.5
    assert during["prefill_tps"] == 1200
    assert after["step_ms"] == pytest.approx(695 / (69 + 5 / 510))  # 0.805 to 1.5 s


def test_an_order_is_of_its_seed_and_boot() -> None:
    seen: dict[int, list[str]] = {}

    async def work(endpoint: str, number: int) -> None:
        settings = Settings(cases=("prose", "code", "math"), streams=(1, 2), tokens=2, min=2, max=2)
        async with Client(endpoint) as client:
            await run.measure_boot(
                client,
                "scripted",
                settings,
                number=number % 2,
                limits=LIMITS,
                progress=lambda where: seen.setdefault(number, []).append(where.point),
            )

    with scripted.serve(Script()) as endpoint:
        for number in (0, 1, 2):
            asyncio.run(work(endpoint, number))
    assert seen[0] == seen[2] != seen[1]
    assert seen[0][6:12] != seen[0][12:18]  # rounds, after the warm-ups
    assert sorted(seen[0][6:12]) == sorted(seen[0][12:18])
