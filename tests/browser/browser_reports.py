"""Reports to show: usual ones, and those at the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import report_values as values

from sparkserve.bench import references
from sparkserve.bench.report import build

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparkserve.bench.report.model import Report
    from sparkserve.bench.results import Result

LONG = "x" * 300


def made(results: Sequence[tuple[str, Result]], *names: str) -> Report:
    return build.build(results, {name: references.load(name) for name in names})


def hostile() -> Report:
    word = values.HOSTILE
    waves = [values.sample({"decode_window_tps": 50.0, "step_ms": 20.0})]
    points = [values.point(name, n, waves) for name in (word, LONG) for n in (1, 2)]
    points.append(values.point("failed", 4, [values.sample({}, failed=4)]))
    boot = values.boot(0, points, notes=(word, LONG), id=word, memory={word: 1.0})
    subject = boot.subject.model_copy(update={"fleet": word, "model": LONG, "engine": {word: word}})
    boot = boot.model_copy(update={"subject": subject})
    result = values.result([boot], mode=word, machine={word: LONG}, settings={word: [word]})
    return made([(word, result), (LONG, result)], "owen-r6-tp4")


REPORTS: dict[str, Callable[[], Report]] = {
    "one": lambda: made([("main", values.run(1))], "knapcio-v2.4", "owen-r6-tp4"),
    "two": lambda: made(
        [("main", values.run(1)), ("candidate", values.run(2, boots=2, speed=1.06))], *references.known()
    ),
    "one-boot": lambda: made([("main", values.run(1, boots=1))]),
    "one-sample": lambda: made(
        [("main", values.run(1, boots=1, samples=1, cases=("prose",), streams=(1,), lengths=()))]
    ),
    "many": lambda: made([("main", values.run(1, cases=[f"case-{i}" for i in range(16)]))]),
    "fast": lambda: made([("main", values.run(1, speed=30))], "owen-r6-tp3"),
    "empty": lambda: made([("main", values.result([]))]),
    "hostile": hostile,
}
