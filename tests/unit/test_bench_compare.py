"""Two arms of result files compared: verdicts, refusals, and what a reader is told."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from campaigns import simulated

from sparkserve.bench.compare import Comparison, Row, compare
from sparkserve.cli.main import main
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sparkserve.bench.results import Boot, Result

QUIET = simulated.Shape(between=1e-4, within=1e-4)


@pytest.fixture
def rng() -> np.random.Generator:
    seed = secrets.randbits(32)
    print("seed", seed)
    return np.random.default_rng(seed)


def arm(
    rng: np.random.Generator, name: str, count: int = 3, change: float = 0, shape: simulated.Shape = QUIET
) -> list[Result]:
    return [simulated.result(simulated.boot(rng, shape, f"{name}{i}", change)) for i in range(count)]


def gating(found: Comparison) -> list[Row]:
    return [row for row in found.rows if row.gates]


def notes(found: Comparison) -> str:
    return "\n".join(found.notes)


def changed(result: Result, change: Callable[[Boot], Boot]) -> Result:
    return result.model_copy(update={"boots": tuple(change(boot) for boot in result.boots)})


def metrics(boot: Boot, values: Sequence[dict[str, float]], point: str = "prose-c1") -> Boot:
    """`boot` with the metrics of its samples at a point replaced."""
    old = boot.points[point]
    samples = tuple(
        old.samples[0].model_copy(update={"round": i, "metrics": each}) for i, each in enumerate(values)
    )
    new = old.model_copy(update={"samples": samples})
    return boot.model_copy(update={"points": {point: new}})


def having(points: Sequence[str]) -> Callable[[Boot], Boot]:
    return lambda boot: boot.model_copy(update={"points": {name: boot.points[name] for name in points}})


def test_a_slower_arm_is_a_regression_and_a_faster_one_is_better(rng: np.random.Generator) -> None:
    slower = compare(arm(rng, "a", change=5), arm(rng, "b"))
    assert slower.regression
    assert [row.point for row in gating(slower)] == list(simulated.NAMES)
    for row in gating(slower):
        assert (row.metric, row.verdict) == ("step_ms", "worse")
        assert row.change == pytest.approx(5, abs=0.2)
        assert row.low is not None and row.high is not None and row.low < row.change < row.high
    # Throughput falls when steps are longer; it is judged and does not decide.
    tps = [row for row in slower.rows if row.metric == "tps"]
    assert {(row.verdict, row.gates) for row in tps} == {("worse", False)}
    assert tps[0].change == pytest.approx(100 * (1 / 1.05 - 1), abs=0.2)
    faster = compare(arm(rng, "a", change=-5), arm(rng, "b"))
    assert not faster.regression
    assert {row.verdict for row in faster.rows} == {"better"}


def test_what_is_within_the_tolerance_is_the_same(rng: np.random.Generator) -> None:
    found = compare(arm(rng, "a", change=2), arm(rng, "b"))
    assert {row.verdict for row in found.rows} == {"same"}
    assert compare(arm(rng, "a", change=2), arm(rng, "b"), tolerance=1).regression


def test_one_boot_is_never_worse_however_slow(rng: np.random.Generator) -> None:
    for sizes in ((1, 1), (1, 5), (5, 1)):
        found = compare(arm(rng, "a", sizes[0], change=50), arm(rng, "b", sizes[1]))
        assert {row.verdict for row in found.rows} == {"unclear"}
        assert not found.regression
        assert "3 %" in notes(found)
        assert found.rows[0].change == pytest.approx(50, abs=1)


def test_samples_do_not_count_as_boots(rng: np.random.Generator) -> None:
    """Two boots with 200 samples each know no more of boots than with 2."""
    noisy = [simulated.Shape(samples=n, between=0.03, within=0) for n in (2, 200)]
    widths = []
    for shape in noisy:
        same = np.random.default_rng(7)
        row = compare(arm(same, "a", 2, shape=shape), arm(same, "b", 2, shape=shape)).rows[0]
        assert row.low is not None and row.high is not None
        widths.append(row.high - row.low)
    assert min(widths) > 2


def test_only_rounds_that_all_boots_have_count(rng: np.random.Generator) -> None:
    """Rounds have other texts: a boot that went on to slower ones is not slower."""
    texts = [10.0, 11.0, 20.0, 30.0]

    def taken(result: Result, rounds: int) -> Result:
        return changed(result, lambda boot: metrics(boot, [{"step_ms": x} for x in texts[:rounds]]))

    a = [taken(each, rounds) for each, rounds in zip(arm(rng, "a"), (2, 3, 4), strict=True)]
    found = compare(a, [taken(each, 2) for each in arm(rng, "b")])
    assert (found.rows[0].a, found.rows[0].change) == pytest.approx((10.5, 0))
    assert "2 rounds" in notes(found)


def test_one_boot_measured_in_two_runs_is_one_boot(rng: np.random.Generator) -> None:
    whole = arm(rng, "a")
    names = simulated.NAMES
    halves = [changed(each, having(part)) for each in whole for part in (names[:3], names[3:])]
    b = arm(rng, "b")
    assert compare(halves, b).rows == compare(whole, b).rows


def test_what_decides(rng: np.random.Generator) -> None:
    def only(result: Result, *names: str) -> Result:
        return changed(result, lambda boot: metrics(boot, [dict.fromkeys(names, 5.0)] * 2))

    def deciding(*names: str, metric: str | None = None) -> set[str]:
        a, b = ([only(each, *names) for each in arm(rng, name, 2)] for name in "ab")
        return {row.metric for row in gating(compare(a, b, metric=metric))}

    assert deciding("tps", "step_ms") == {"step_ms"}
    assert deciding("tps", "ttft_s") == {"tps"}
    assert deciding("ttft_s", "hit_rate") == {"ttft_s"}
    assert deciding("tps", "step_ms", metric="tps") == {"tps"}
    with pytest.raises(SparkserveError, match="hit_rate"):
        deciding("tps", metric="hit_rate")


def test_what_cannot_be_compared_is_said(rng: np.random.Generator) -> None:
    a, b = arm(rng, "a"), arm(rng, "b")
    a[0] = changed(a[0], having(simulated.NAMES[:-1]))
    cut = changed(
        arm(rng, "c", 1)[0], lambda boot: boot.model_copy(update={"notes": ("cut short: interrupted",)})
    )
    found = compare([*a, cut], b)
    assert "code-c8 is not in every boot" in notes(found)
    assert "c0 is left out" in notes(found)
    assert len(gating(found)) == 7
    assert found.boots_a == ("a0", "a1", "a2")


def test_zero_has_no_change_in_percent(rng: np.random.Generator) -> None:
    def rated(result: Result, rate: float) -> Result:
        return changed(result, lambda boot: metrics(boot, [{"tps": 9.0, "hit_rate": rate}]))

    found = compare([rated(each, 0) for each in arm(rng, "a")], [rated(each, 0.9) for each in arm(rng, "b")])
    assert [row.metric for row in found.rows] == ["tps"]
    assert "hit_rate is 0" in notes(found)
    never = [rated(each, 0) for each in arm(rng, "b")]
    assert "hit_rate" not in notes(compare([rated(each, 0) for each in arm(rng, "a")], never))


def test_doubts_are_said(rng: np.random.Generator) -> None:
    a, b = arm(rng, "a", 2), arm(rng, "b")
    a[0] = a[0].model_copy(update={"machine": {"cores": 4, "load": 9}})
    a[1] = changed(a[1], lambda boot: boot.model_copy(update={"notes": ("throttled",)}))
    late = [changed(each, lambda boot: boot.model_copy(update={"started": "2027"})) for each in b]
    said = notes(compare(a, late))
    assert "cores is 2 and 4" in said
    assert "load" not in said
    assert "boot a1: throttled" in said
    assert "2 and 3 boots" in said
    assert "before the other's" in said


def other(kind: str) -> Callable[[Boot], Boot]:
    def change(boot: Boot) -> Boot:
        if kind == "model":
            return boot.model_copy(update={"subject": boot.subject.model_copy(update={"model": "else"})})
        values: dict[str, Any] = {"prompts": ("f" * 64,), "text": "filler", "streams": 3}
        points = {n: p.model_copy(update={kind: values[kind]}) for n, p in boot.points.items()}
        return boot.model_copy(update={"points": points})

    return change


@pytest.mark.parametrize("kind", ["prompts", "text", "streams", "model"])
@pytest.mark.parametrize("of_arm", [slice(0, 3), slice(1, 2)])
def test_unlike_results_are_refused(rng: np.random.Generator, kind: str, of_arm: slice) -> None:
    """A whole arm, or one boot in it."""
    a = arm(rng, "a")
    a[of_arm] = [changed(each, other(kind)) for each in a[of_arm]]
    with pytest.raises(SparkserveError, match=rf"(?s)BENCH\.RESULT.*{kind}"):
        compare(a, arm(rng, "b"))


def test_other_lengths_and_double_boots_are_refused(rng: np.random.Generator) -> None:
    a, b = arm(rng, "a"), arm(rng, "b")
    short = [each.model_copy(update={"settings": {"tokens": 64}}) for each in a]
    infinite = changed(a[0], lambda boot: metrics(boot, [{"step_ms": float("inf")}]))
    for wrong, why in ((short, "tokens"), ([*a, a[0]], "twice"), ([*a, b[0]], "both"), ([infinite], "inf")):
        with pytest.raises(SparkserveError, match=rf"BENCH\.RESULT.*{why}"):
            compare(wrong, b)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["bench", "compare", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    return caught.value.code, *capsys.readouterr()


def test_command(rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = simulated.write(tmp_path, rng, QUIET, "a", 3, change=10)
    b = simulated.write(tmp_path, rng, QUIET, "b", 3, change=0)
    code, out, err = run(capsys, *a, "--against", *b)
    assert code == 83
    assert "+10.0 %" in out
    assert out.count("worse") == 2 * len(simulated.NAMES)
    assert "Regression" in err
    assert "5 in 100" in err
    # Wherever the option stands, and however it is written.
    code, out, _ = run(capsys, "--against", *b, "--json", *a)
    document = json.loads(out)
    assert (code, document["schema"], document["regression"]) == (83, "sparkserve.compare/1", True)
    assert document["boots_a"] == ["a0", "a1", "a2"]
    code, out, _ = run(capsys, *b, f"--against={a[0]}", *a[1:], "--metric", "tps", "--tolerance", 5, "--json")
    document = json.loads(out)
    assert (code, document["boots_b"], document["tolerance"]) == (0, ["a0", "a1", "a2"], 5)
    assert {row["metric"] for row in document["rows"] if row["gates"]} == {"tps"}


def test_bad_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    code, out, _ = run(capsys, bad, "--against", bad, "--json")
    assert (code, json.loads(out)["error"]) == (80, "BENCH.RESULT")
    assert run(capsys, bad)[0] == 2
    assert run(capsys, bad, "--against")[0] == 2
    assert run(capsys, "--against", bad)[0] == 2
    assert run(capsys, tmp_path / "none.json", "--against", bad)[0] == 2
    assert run(capsys, bad, "--against", bad, "--tolerance", "nan")[0] == 2
