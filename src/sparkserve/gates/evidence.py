"""The evidence file of one gate: what was asked of which bytes, what came, and the verdict."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Subject(_Frozen):
    """What was under test. Ids are None for an endpoint that is no fleet of ours (`--endpoint`)."""

    endpoint: str
    model: str
    fleet: str | None = None
    fleet_id: str | None = None
    plan_sha256: str | None = None  # of the head's plan
    boot: str | None = None
    engine: dict[str, str] = Field(
        default_factory=dict
    )  # what the engine says of itself: version, model path


class Evidence(_Frozen):
    """`schema` sparkserve.gate/1. `counters` are the engine's, their growth while the gate ran."""

    schema_name: Literal["sparkserve.gate/1"] = Field(default="sparkserve.gate/1", alias="schema")
    gate: str
    passed: bool
    ran: bool  # False: it could not run, and `summary` says why
    summary: str
    subject: Subject
    started: str  # UTC, ISO 8601
    seconds: float
    quick: bool
    seed: int
    measured: dict[str, float | int | str | None] = Field(default_factory=dict)
    limits: dict[str, float | int] = Field(default_factory=dict)
    findings: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    counters: dict[str, float] = Field(default_factory=dict)
    against: str | None = None  # sha256 of the evidence it was compared with
    details: Any = None
