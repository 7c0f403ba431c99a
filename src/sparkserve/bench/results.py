"""The result file of a bench run. A file holds one or more boots; a comparison takes several per arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve import given
from sparkserve.errors import SparkserveError
from sparkserve.gates.evidence import Subject  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from pathlib import Path

# What a sample may measure. Units: step_ms and itl_* in milliseconds, ttft_s in seconds, *tps in tokens/s.
METRICS: dict[str, Literal["higher", "lower"]] = {
    "tps": "higher",  # completion tokens of all streams over the sample's wall time
    "decode_window_tps": "higher",  # (tokens - 1) of all streams from the first first to the last last piece
    "derived_tps": "higher",  # 1000 x tokens_per_step x streams / step_ms
    "stream_tps": "higher",  # mean over streams of (tokens - 1) / (last - first)
    "prefill_tps": "higher",  # prompt tokens over the time to the first token
    "step_ms": "lower",  # one pass of the engine
    "ttft_s": "lower",
    "itl_p50_ms": "lower",
    "itl_p90_ms": "lower",
    "itl_p99_ms": "lower",
    "tokens_per_step": "higher",
    "accepted_per_verified": "higher",
    "hit_rate": "higher",
}


ABSURD = 1e15  # no metric is, and none is below 0; nor is NaN, which JSON can hold, between them


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Sample(_Frozen):
    """One wave of `streams` requests. `metrics` has names of METRICS; one that cannot be had is not there."""

    round: int
    metrics: dict[str, float]
    completion_tokens: int
    prompt_tokens: int
    outputs: tuple[str, ...] = ()  # first 16 hex digits of the sha256 of each answer
    failed: int = 0


class Discard(_Frozen):
    """A sample that was thrown away and repeated, and why."""

    point: str
    round: int
    why: str


class Point(_Frozen):
    """Samples of one case at one number of streams, in one boot. `text`: novel is drawn words."""

    case: str
    streams: int = Field(ge=1, le=65536)
    text: Literal["real", "novel", "filler"]
    prompts: tuple[str, ...]  # sha256 of each stream's prompt
    samples: tuple[Sample, ...]


class Boot(_Frozen):
    """All that was measured from one start of the engine to its end. `points` by name, such as `prose-c4`."""

    id: str
    started: str  # UTC, ISO 8601
    subject: Subject
    points: dict[str, Point]
    discarded: tuple[Discard, ...] = ()
    counters: dict[str, float] = Field(
        default_factory=dict
    )  # the engine's, their growth over the boot's samples
    memory: dict[str, float] = Field(default_factory=dict)  # lowest MemAvailable by node, GiB
    notes: tuple[str, ...] = ()  # what a reader must know: throttled, cut short, another load on the machine


class Result(_Frozen):
    """`schema` sparkserve.bench/1. `mode` is the command that made it."""

    schema_name: Literal["sparkserve.bench/1"] = Field(default="sparkserve.bench/1", alias="schema")
    mode: str
    seed: int
    settings: dict[str, Any]
    machine: dict[str, Any]
    boots: tuple[Boot, ...]


def read(path: Path) -> Result:
    """The result in the file `path`. Raises `BENCH.RESULT` when it holds none, and OSError."""
    try:
        with path.open("rb") as file:  # a pipe is welcome; a device without end is not read to its end
            return Result.model_validate_json(given.limited(file))
    except ValueError as error:
        raise SparkserveError(
            "BENCH.RESULT",
            expected="a result of sparkserve bench, schema sparkserve.bench/1",
            found=given.fault(error),
            where=str(path),
            do="Name a file that `sparkserve bench` wrote.",
        ) from error
