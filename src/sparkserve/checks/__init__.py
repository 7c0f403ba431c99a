"""The suites of `sparkserve check`: a file in this folder is the suite of that name.

A file that starts with `_` is none. A suite says what it proves (`title`), what it costs (`cost_s`), and
whether it runs only when asked for (`slow`). Cheap suites run first.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class Outcome(NamedTuple):
    """How many cases passed, and one text for each that did not."""

    passed: int
    failures: list[str]


class Suite(Protocol):
    """What a file of this folder defines. `cost_s`: typical seconds on two cores with everything built."""

    title: str
    cost_s: int
    slow: bool

    def run(self, detail: Callable[[str], None]) -> Outcome:
        """Run all cases; `detail` shows a line of progress. Raises SparkserveError when it cannot start."""


def names() -> list[str]:
    """The names of all suites; none is imported."""
    return [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]


def load() -> dict[str, Suite]:
    """All suites by name, cheapest first."""
    suites = {name: cast("Suite", importlib.import_module(f"{__name__}.{name}")) for name in names()}
    return dict(sorted(suites.items(), key=lambda item: (item[1].cost_s, item[0])))
