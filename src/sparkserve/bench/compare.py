"""Two arms of boots compared: what changed, by how much, and whether that is a regression."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve.bench import arms, caveats
from sparkserve.bench.results import METRICS
from sparkserve.stats.arms import ALPHA, Change, changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sparkserve.bench.results import Result

TOLERANCE = 3.0  # percent; owen 6.1
# What decides at a point: the first of these that all boots have. The engine's own step before what a client
# sees: the number of tokens in a step depends on the text.
GATING = ("step_ms", "prefill_tps", "tps", "ttft_s")
Verdict = Literal["better", "worse", "same", "unclear"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Row(_Frozen):
    """One metric at one point. `a` and `b` are geometric means of boots, in the metric's unit.

    All else is in percent. `low` and `high` are the 95 % interval of the change of A against B, of this row
    alone; `p` is for all rows that are judged together. `sd_a` and `sd_b` are between boots. `detectable` is
    the change that this comparison finds in 80 of 100 cases. None: there is an arm of one boot.
    """

    point: str
    metric: str
    gates: bool
    a: float
    b: float
    change: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    sd_a: float | None = None
    sd_b: float | None = None
    detectable: float | None = None
    verdict: Verdict = "unclear"


class Comparison(_Frozen):
    """`schema` sparkserve.compare/1. `boots_*` are ids; `notes` are what a reader must know."""

    schema_name: Literal["sparkserve.compare/1"] = Field(default="sparkserve.compare/1", alias="schema")
    boots_a: tuple[str, ...]
    boots_b: tuple[str, ...]
    tolerance: float
    regression: bool
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def compare(
    a: Sequence[Result], b: Sequence[Result], *, metric: str | None = None, tolerance: float = TOLERANCE
) -> Comparison:
    """Compare arm A with arm B, which is what there was before.

    `metric` decides in place of GATING; `tolerance` is in percent. Raises `BENCH.RESULT` for results that are
    not of the same work.
    """
    arm_a, arm_b = arms.read("A", a), arms.read("B", b)
    if both := sorted(arm_a.boots.keys() & arm_b.boots.keys()):
        raise arms.unlike("other boots in A than in B", f"{both[0]} in both", both[0])
    boots = [*arm_a.boots.values(), *arm_b.boots.values()]
    arms.check(item for boot in boots for item in boot.items())
    table = _Table(boots, metric)
    if not any(gates for _, _, gates in table.values):
        wanted = metric or " or ".join(GATING)
        raise arms.unlike(f"a point with {wanted} in every boot", "none", f"{len(boots)} boots")
    rows = tuple(
        row
        for names in table.families()
        for row in _judge([(n, table.values[n]) for n in names], len(arm_a.boots), tolerance)
    )
    return Comparison(
        schema="sparkserve.compare/1",
        boots_a=tuple(arm_a.boots),
        boots_b=tuple(arm_b.boots),
        tolerance=tolerance,
        regression=any(row.gates and row.verdict == "worse" for row in rows),
        rows=rows,
        notes=(*caveats.of(arm_a, arm_b, sum(row.gates for row in rows)), *table.notes),
    )


_Name = tuple[str, str, bool]  # point, metric, whether it gates


class _Table:
    """The means of all boots, A's first, for what can be compared."""

    def __init__(self, boots: Sequence[Mapping[str, arms.Measured]], metric: str | None) -> None:
        self.values: dict[_Name, list[float]] = {}
        self.notes: list[str] = []
        for point in dict.fromkeys(name for boot in boots for name in boot):
            if not all(point in boot for boot in boots):
                self.notes.append(f"{point} is not in every boot, and is not compared.")
                continue
            common = arms.rounds(point, boots)
            if any(len(boot[point].rounds) > len(common) for boot in boots):
                self.notes.append(
                    f"{point}: the {len(common)} rounds that all boots have count; others have other texts."
                )
            self._add(point, metric, boots, common)

    def _add(
        self, point: str, metric: str | None, boots: Sequence[Mapping[str, arms.Measured]], common: set[int]
    ) -> None:
        found = {m: v for m in METRICS if common and (v := arms.means(point, m, boots, common))}
        for name in [name for name, values in found.items() if min(values) <= 0]:
            if any(found.pop(name)):
                self.notes.append(f"{point}: {name} is 0 in some boots: no change in percent.")
        gating = metric if metric else next((each for each in GATING if each in found), None)
        for name, values in found.items():
            self.values[(point, name, name == gating)] = values

    def families(self) -> Iterator[list[_Name]]:
        """What is judged together: all that gates; then each other metric at all of its points."""
        yield [name for name in self.values if name[2]]
        for metric in METRICS:
            if names := [name for name in self.values if name[1] == metric and not name[2]]:
                yield names


def _judge(family: Sequence[tuple[_Name, list[float]]], split: int, tolerance: float) -> Iterator[Row]:
    """The rows of one family; the first `split` values are A's."""
    values_a = [values[:split] for _, values in family]
    values_b = [values[split:] for _, values in family]
    alone = min(len(values_a[0]), len(values_b[0])) < 2
    found = None if alone else changes(_by_boot(values_a), _by_boot(values_b), tolerance)
    for i, ((point, metric, gates), _) in enumerate(family):
        a, b = (statistics.geometric_mean(values[i]) for values in (values_a, values_b))
        row = Row(point=point, metric=metric, gates=gates, a=a, b=b, change=100 * (a / b - 1))
        if found is not None:
            change = found[i]
            row = row.model_copy(
                update={
                    "low": change.low,
                    "high": change.high,
                    "p": change.p,
                    "detectable": change.detectable,
                    "sd_a": _spread(values_a[i]),
                    "sd_b": _spread(values_b[i]),
                    "verdict": _verdict(metric, change, tolerance),
                }
            )
        yield row


def _by_boot(by_point: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    return list(zip(*by_point, strict=True))


def _spread(values: Sequence[float]) -> float:
    """The standard deviation between boots, in percent."""
    return 100 * math.expm1(statistics.stdev(map(math.log, values)))


def _verdict(metric: str, change: Change, tolerance: float) -> Verdict:
    """Better or worse: p below 5 %, so that the interval is on one side of 0, and more than `tolerance`."""
    if change.p < ALPHA and abs(change.percent) > tolerance:
        return "better" if (change.percent > 0) == (METRICS[metric] == "higher") else "worse"
    return "same" if -tolerance < change.low and change.high < tolerance else "unclear"
