"""Results that are made up, for tests of the report."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from sparkserve.bench.results import Boot, Discard, Point, Result, Sample
from sparkserve.gates.evidence import Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOSTILE = '<script>alert("x")</script></style></svg>]]>&amp; שלום \u202eevil 🚀名前 | `x`'


def sample(metrics: Mapping[str, float], *, round: int = 0, failed: int = 0) -> Sample:
    return Sample(round=round, metrics=dict(metrics), completion_tokens=256, prompt_tokens=60, failed=failed)


def point(
    case: str, streams: int, samples: Sequence[Sample], *, text: str = "real", same: bool = False
) -> Point:
    prompts = tuple("ab" * 32 if same else f"{i:064x}" for i in range(streams))
    return Point.model_validate(
        {"case": case, "streams": streams, "text": text, "prompts": prompts, "samples": tuple(samples)}
    )


def boot(number: int, points: Sequence[Point], **more: Any) -> Boot:
    named = {f"{p.case}-c{p.streams}": p for p in points}
    given: dict[str, Any] = {
        "id": f"boot-{number}",
        "started": f"2026-10-12T0{number % 10}:00:00Z",
        "subject": Subject(
            endpoint="http://192.168.100.100:8888",
            model="deepseek-v4.1-flash",
            fleet="tp4-switched",
            fleet_id="5f" * 32,
            plan_sha256="c0" * 32,
            boot=f"boot-{number}",
            engine={"sglang": "0.5.23"},
        ),
        "points": named,
        "memory": {"spark-0": 5.7, "spark-1": 7.1 + number / 10},
    }
    return Boot(**(given | more))


def result(boots: Sequence[Boot], **more: Any) -> Result:
    given: dict[str, Any] = {
        **{
            "schema": "sparkserve.bench/1",
            "mode": "decode",
            "seed": 7,
            "settings": {"min": 3, "precision": 2.0},
        },
        "machine": {"nodes": "4 x made up", "kernel": "6.12"},
        "boots": tuple(boots),
    }
    return Result(**(given | more))


def run(
    seed: int,
    *,
    boots: int = 3,
    samples: int = 4,
    cases: Sequence[str] = ("prose", "code", "structured", "json"),
    streams: Sequence[int] = (1, 2, 4, 8, 16),
    lengths: Sequence[int] = (4096, 16384, 32768, 65536, 131072),
    speed: float = 1.0,
) -> Result:
    """A run whose boots differ by about 2 %, samples by 1 %."""
    draw = random.Random(seed)  # noqa: S311 - a test's
    made = []
    for number in range(boots):
        quick = speed * draw.gauss(1, 0.02)
        points = []
        for i, case in enumerate(cases):
            for n in streams:
                waves = []
                for round in range(samples):
                    step = (28 + 2.5 * n**0.8 + 3 * (i % 4)) / quick * draw.gauss(1, 0.004)
                    tokens = min(2.3 + 0.5 * (i % 4), 5) * draw.gauss(1, 0.008)
                    window = 1000 * tokens * n / step
                    itl = step / tokens
                    waves.append(
                        sample(
                            {
                                **{
                                    "tps": window * 0.96,
                                    "decode_window_tps": window,
                                    "derived_tps": window * 1.01,
                                },
                                **{
                                    "stream_tps": window / n * 1.02,
                                    "step_ms": step,
                                    "tokens_per_step": tokens,
                                },
                                **{"accepted_per_verified": (tokens - 1) / 5, "ttft_s": 0.2 + 0.03 * n},
                                **{"itl_p50_ms": itl * 0.9, "itl_p90_ms": itl * 1.6, "itl_p99_ms": itl * 2.8},
                            },
                            round=round,
                        )
                    )
                points.append(point(case, n, waves))
        for length in lengths:
            rate = 5900 / (1 + 900 / length) * quick
            waves = [
                sample({"prefill_tps": rate * draw.gauss(1, 0.004), "ttft_s": length / rate}, round=r)
                for r in range(samples)
            ]
            points.append(point(f"novel-{length}", 1, waves, text="novel"))
        why = Discard(point="code-c4", round=2, why="2 requests of others in the sample")
        more: dict[str, Any] = {"discarded": (why,), "notes": ("clock at 2200 MHz",)} if number == 1 else {}
        made.append(boot(number, points, **more))
    return result(made)
