"""What a gate is given and what it gives. A file of `kinds` is a gate by being there, under its name.

Such a module has `title` (what it proves, one line), `needs` (one line, what a model or endpoint must have),
`cost_s` (seconds on two cores with SmolLM2: quick, whole) and `async def run(context) -> Outcome`. It may
have `compare(old, new) -> Outcome`, the verdict over two of its evidence files: the runner asks it after
`run` when there is one to compare with, and `gate compare` asks it; `run` itself does not judge by
`context.against`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.client.client import Client
    from sparkserve.gates.evidence import Evidence
    from sparkserve.plan import Plan


# Seconds for what an engine says of itself. SGLang's /health makes a token first: two cores with other work
# needed more than 10 s for it, which is no verdict.
LOOK_S = 60.0


class CannotRunError(Exception):
    """The gate has no verdict; the text says what is missing. A declared gate that cannot run has failed."""


@dataclass(frozen=True, slots=True)
class Context:
    """One endpoint under test. `seed` decides all that is random; `against` is what to compare with.

    `progress` takes how many requests are done, and of how many (`asking.Asker` calls it).
    """

    client: Client
    model: str
    quick: bool
    seed: int
    plan: Plan | None = None
    against: Evidence | None = None
    progress: Callable[[int, int], None] = lambda done, total: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and its reasons. `measured` and `limits` share their names where one bounds the other.

    `findings` is one line for each thing that is wrong, with where it was seen; `prompts` the sha256 of what
    was sent, in order; `details` is JSON for whoever looks closer, and for `gate compare`.
    """

    passed: bool
    summary: str
    measured: dict[str, float | int | str | None]
    limits: dict[str, float | int]
    findings: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    details: Any = field(default=None)


class Gate(Protocol):
    """The module of a gate."""

    title: str
    needs: str
    cost_s: tuple[int, int]

    async def run(self, context: Context) -> Outcome:
        """Ask, measure, judge. Raises CannotRunError."""
