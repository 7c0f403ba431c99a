"""Tables that other owners of Sparks published, as data: a file NAME.json is the reference NAME.

They are from other machines and other protocols. A report draws them beside a run and puts them into no
statistics.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sparkserve.bench.results import METRICS
from sparkserve.errors import SparkserveError

_NAME = re.compile(r"(?P<case>.+?)(?:-c(?P<streams>[1-9][0-9]*))?")


class Place(NamedTuple):
    """Which point it is: the name of a case, and how many requests at once."""

    case: str
    streams: int


def place(name: str) -> Place:
    """`prose-c4` is case prose with 4 streams. A name that says no streams, as `prefill-32768`, has one."""
    found = _NAME.fullmatch(name)
    assert found is not None  # noqa: S101 - every name that is not empty matches
    return Place(found["case"], int(found["streams"] or 1))


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Published(_Frozen):
    """A point as published. `metrics` has units of `bench.results.METRICS`, by its names.

    `percent`: half of the interval that the author gives, in percent of the value, where one is given.
    """

    metrics: dict[str, float] = Field(min_length=1)
    percent: dict[str, float] = Field(default_factory=dict)
    text: Literal["real", "novel", "filler"]

    @field_validator("metrics", "percent")
    @classmethod
    def _known(cls, value: dict[str, float]) -> dict[str, float]:
        """A metric of another name would be drawn nowhere. Raises ValueError."""
        if unknown := sorted(value.keys() - METRICS.keys()):
            raise ValueError(f"no metric of ours: {', '.join(unknown)}")
        return value


class Reference(_Frozen):
    """`schema` sparkserve.reference/1. `points` by name, as in a result: `prose-c4`, `prefill-32768`."""

    schema_name: Literal["sparkserve.reference/1"] = Field(alias="schema")
    title: str
    project: str  # the repository or site that published it
    published: str  # year and month, or the day
    machine: str
    engine: str
    conditions: tuple[str, ...]  # how it was measured
    caveats: tuple[str, ...]  # what a reader must know before comparing
    points: dict[str, Published]


def known() -> list[str]:
    """The names of all references."""
    return sorted(file.name[:-5] for file in files(__name__).iterdir() if file.name.endswith(".json"))


def load(name: str) -> Reference:
    """The reference `name`. Raises `BENCH.RESULT` for one that is not there or not valid."""
    if name not in known():
        raise SparkserveError(
            "BENCH.RESULT",
            expected=f"one of {', '.join(known())}",
            found=f"no reference {name!r}",
            where="bench/references",
            do="Choose one of these.",
        )
    try:
        return Reference.model_validate_json(files(__name__).joinpath(f"{name}.json").read_bytes())
    except ValidationError as error:
        raise SparkserveError(
            "BENCH.RESULT",
            expected="schema sparkserve.reference/1",
            found=f"{error.errors()[0]['msg']} at {error.errors()[0]['loc']}",
            where=f"bench/references/{name}.json",
            do="Restore the file from git.",
        ) from error
