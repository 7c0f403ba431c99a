"""What a host closure says about itself: `closure.json`, written by Nix (nix/closure.nix)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Layer(_Part):
    """One folder of the engine root: `path` is bound read-only at `target`; `diff_id` is its tar's digest."""

    name: str
    target: str = Field(pattern="^/")
    path: str = Field(pattern="^/")
    diff_id: str = Field(pattern="^sha256:[0-9a-f]{64}$")


class Root(_Part):
    """The engine root: its layers in mount order, the one for `/` first."""

    digest: str = Field(pattern="^sha256:[0-9a-f]{64}$")
    layers: tuple[Layer, ...] = Field(min_length=1)


class Harness(_Part):
    """The harness that belongs to the closure: the digest of its layer and its store path."""

    digest: str = Field(pattern="^sha256:[0-9a-f]{64}$")
    path: str = Field(pattern="^/")


class Closure(_Part):
    """A host closure.

    `argv` is the engine's command inside the root (the plan's arguments follow it), `env` what the root needs
    (the plan may override it), `bwrap` the program that enters the root, `guard` the memory guard's, for a
    plan that has one.
    """

    schema_: Literal["sparkserve.closure/1"] = Field(alias="schema")
    fleet_id: str = Field(pattern="^[0-9a-f]{64}$")
    root: Root
    argv: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str]
    harness: Harness
    bwrap: str = Field(pattern="^/")
    guard: str | None = Field(pattern="^/")


def load(path: Path) -> Closure:
    """Read `closure.json` in the host closure at `path`.

    Raises `PLAN.SCHEMA` when it is missing or of another form.
    """
    file = path / "closure.json"
    try:
        return Closure.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise SparkserveError(
            "PLAN.SCHEMA",
            expected="a host closure of schema sparkserve.closure/1",
            found=" ".join(str(error).split()),
            where=str(file),
            do="Build it with the same version of sparkserve that reads it.",
        ) from None
