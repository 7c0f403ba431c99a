"""What a report says before anybody reads a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import report_values as values

from sparkserve.bench.report import build, figures, words

if TYPE_CHECKING:
    from sparkserve.bench.results import Boot, Point


def said(*boots: Boot) -> str:
    return " ".join(build.build([("a", values.result(boots))], {}).warnings)


def good(case: str = "prose", streams: int = 1) -> Point:
    return values.point(case, streams, [values.sample({"tps": 9.0})])


def test_one_boot_is_said_and_three_are_not() -> None:
    assert "Every figure rests on one boot" in said(values.boot(0, [good()]))
    assert said(*(values.boot(i, [good()]) for i in range(3))) == ""


def test_a_point_of_one_boot_among_several_is_named() -> None:
    found = said(values.boot(0, [good(), good("code", 4)]), values.boot(1, [good()]))
    assert "code-c4: figures of one boot" in found
    assert "prose-c1" not in found


def test_nothing_measured() -> None:
    assert "There is nothing to report" in said()


def test_failed_requests_and_points_without_a_figure() -> None:
    failed = values.point("code", 4, [values.sample({}, failed=3), values.sample({}, failed=4)])
    found = said(*(values.boot(i, [good(), failed]) for i in range(2)))
    assert "14 requests failed, at code-c4" in found
    assert "No figure at code-c4" in found


def test_streams_that_share_a_prompt() -> None:
    same = values.point("code", 4, [values.sample({"tps": 1.0})], same=True)
    assert "Streams share a prompt at code-c4" in said(values.boot(0, [same]))
    assert "share" not in said(values.boot(0, [good("code", 4)]))
    # A result that keeps no prompts says nothing of them.
    assert "share" not in said(values.boot(0, [good().model_copy(update={"prompts": ()})]))


def test_filler_other_fleets_discards_and_notes() -> None:
    filler = values.point("filler-4096", 1, [values.sample({"prefill_tps": 1.0})], text="filler")
    assert "Filler text at filler-4096-c1" in said(values.boot(0, [filler]))
    other = values.boot(1, [good()])
    other = other.model_copy(update={"subject": other.subject.model_copy(update={"fleet_id": "1" * 64})})
    assert "different fleet ids" in said(values.boot(0, [good()]), other)
    assert "1 boot with notes" in said(values.boot(0, [good()], notes=("throttled",)))


def test_arms_side_by_side_are_no_verdict() -> None:
    run = values.result([values.boot(i, [good()]) for i in range(2)])
    (warning,) = build.build([("a", run), ("b", run)], {}).warnings
    assert "bench compare" in warning


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((89.93, "89.93"), (341.26, "341.3"), (5941.4, "5,941"), (0.2234, "0.223"), (0.0, "0.000")),
        *((1e-5, "1e-05"), (2.5e6, "2.5e+06"), (999.96, "1,000.0")),
    ],
)
def test_number(value: float, text: str) -> None:
    assert words.number(value) == text


def test_an_interval_below_0_is_not_read_as_a_minus() -> None:
    waves = [values.sample({"tps": tps}) for tps in (1.0, 9.0)]
    found = figures.figure([[w.metrics["tps"] for w in waves]], None)
    assert words.span(found) == "-45.82 to 55.82 in one boot"  # 5 and 12.706 x 4


def test_lengths() -> None:
    assert [words.length(c) for c in ("prefill-32768", "real-2048", "novel-7")] == [32768, 2048, 7]
    assert [words.length(c) for c in ("cold-real-2048", "prose", "real-", "real-" + "9" * 99)] == [None] * 4
    assert [words.tokens(n) for n in (32768, 1 << 20, 500000, 777)] == ["32K", "1M", "500k", "777"]


def test_summary_tells_speed_step_prefill_and_memory() -> None:
    tiles = build.build([("a", values.run(3))], {}).summaries[0].tiles
    assert [(t.label, t.where) for t in tiles] == [
        *(("decode", "prose-c1"), ("most at once", "json-c16"), ("step", "prose-c1")),
        *(("first token", "prose-c1"), ("prefill", "128K tokens, novel"), ("lowest memory", "spark-0")),
    ]


def test_summary_of_points_that_are_neither() -> None:
    waves = {
        name: values.point(name, 1, [values.sample({"ttft_s": s})])
        for name, s in (("warm", 0.1), ("cold", 2.0))
    }
    tiles = build.build([("a", values.result([values.boot(0, list(waves.values()))]))], {}).summaries[0].tiles
    assert [(t.where, t.value) for t in tiles[:2]] == [("warm-c1", "0.100"), ("cold-c1", "2.000")]
