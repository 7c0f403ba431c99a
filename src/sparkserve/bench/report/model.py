"""What a report holds, whatever it is written as. `--output report.json` is this."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve.bench.references import Reference  # noqa: TC001 - pydantic reads it
from sparkserve.bench.results import Discard  # noqa: TC001
from sparkserve.gates.evidence import Subject  # noqa: TC001


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Figure(_Frozen):
    """One metric of one point. `low` and `high` are the 95 % interval, in the metric's unit.

    `over` says what varied: with "boots" the interval is of what the next boot will give. With "samples" it
    is of one boot alone, and the next boot may lie outside. None: one sample, no interval.
    """

    mean: float  # of the boots' means
    low: float | None
    high: float | None
    over: Literal["boots", "samples"] | None
    boots: tuple[float, ...]  # each boot's mean
    samples: int


class Row(_Frozen):
    """A point of an arm, over its boots. `figures` by names of `bench.results.METRICS`."""

    name: str
    case: str
    streams: int
    text: tuple[str, ...]  # more than one when boots differ
    shared: bool  # some streams had the same prompt
    samples: int
    failed: int  # requests
    figures: dict[str, Figure]


class Start(_Frozen):
    """A boot: when, and of what."""

    id: str
    started: str
    subject: Subject
    memory: dict[str, float]  # lowest MemAvailable by node, GiB
    notes: tuple[str, ...]
    discarded: tuple[Discard, ...]


class Arm(_Frozen):
    """A result file."""

    name: str
    mode: str
    seed: int
    settings: dict[str, Any]
    machine: dict[str, Any]
    boots: tuple[Start, ...]
    rows: tuple[Row, ...]


class Tile(_Frozen):
    """A figure of the summary: what it is and where, and texts that are ready to read."""

    label: str
    where: str  # a point's or a node's name
    value: str
    unit: str
    detail: str


class Summary(_Frozen):
    """What an owner wants to know of an arm in five seconds."""

    sentence: str
    tiles: tuple[Tile, ...]


class Report(_Frozen):
    """`schema` sparkserve.report/1. `summaries` are by arm, in their order."""

    schema_name: Literal["sparkserve.report/1"] = Field(default="sparkserve.report/1", alias="schema")
    title: str
    summaries: tuple[Summary, ...]
    warnings: tuple[str, ...]
    arms: tuple[Arm, ...]
    references: dict[str, Reference]
