"""Baselines: what an owner has promoted, one file each in manifests/baselines.

Three things are kept apart. *Observed* is what nodes say of themselves when they are asked. *Desired* is what
the fleet's newest baseline says. *Experimental* is what `up` has put on the nodes: nobody has proved it.

`docs/baseline.schema.json` is the JSON Schema of these types (`sparkserve baselines schema`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sparkserve import checkout, given
from sparkserve.deploy.plan import StorePath  # noqa: TC001 - pydantic needs them at run time
from sparkserve.errors import SparkserveError
from sparkserve.names import FleetName, GateName, Name  # noqa: TC001
from sparkserve.plan import Adapter  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
# Also the end of a file name, and of a GC root's name on every node; never a generation's number.
NAME = r"^[a-z][a-z0-9.-]{0,62}$"
BaselineName = Annotated[str, Field(pattern=NAME)]
Utc = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
FOLDER = "manifests/baselines"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, serialize_by_alias=True)


class Observed(_Frozen):
    """What a node said of itself at the promotion. `differences` are from its closure, in words."""

    kernel: Name
    page_size: Name
    driver: Name
    differences: tuple[str, ...]


class Node(_Frozen):
    """A node: the generation that it ran, which a deployment kept at `kept_at`, and its host closure."""

    name: Name
    generation: Annotated[int, Field(ge=1)]
    closure: StorePath
    kept_at: Name
    plan_sha256: Sha256
    observed: Observed


class Pin(_Frozen):
    """What the closure is made of, by its hash; a name may be that of two."""

    name: Name
    version: str
    sha256: Sha256


class Proof(_Frozen):
    """The evidence of a gate: the bytes of its file, and what it says."""

    gate: GateName
    passed: Literal[True]
    quick: bool
    summary: str
    started: Name
    measured: dict[str, float | int | str | None]
    limits: dict[str, float | int]
    file: Name
    sha256: Sha256


class File(_Frozen):
    """A result file by its bytes."""

    name: Name
    sha256: Sha256


class Reference(_Frozen):
    """One metric at one point, in the metric's unit. A value is the mean of a boot.

    `low` and `high` are the 95 % interval of the mean of boots; null with one boot.
    """

    point: Name
    metric: Name
    boots: Annotated[int, Field(ge=1)]
    median: float
    low: float | None
    high: float | None


class Bench(_Frozen):
    """What it was measured at. `notes` are what a reader of the figures must know."""

    files: Annotated[tuple[File, ...], Field(min_length=1)]
    references: Annotated[tuple[Reference, ...], Field(min_length=1)]
    notes: tuple[str, ...]


class Baseline(_Frozen):
    """One promotion. `nodes` are in rank order; `previous` is the fleet's baseline before this one.

    `root` and `harness` are digests of bytes, `adapters` and `pins` those of the head. `why` is the owner's
    reason, `warnings` what a promotion allows and tells.
    """

    schema_name: Literal["sparkserve.baseline/1"] = Field(default="sparkserve.baseline/1", alias="schema")
    name: BaselineName
    fleet: FleetName
    fleet_id: Sha256
    promoted_at: Utc
    why: Annotated[str, Field(pattern=r"\S")]
    previous: BaselineName | None
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    root: Digest
    harness: Digest
    adapters: tuple[Adapter, ...]
    pins: dict[Name, tuple[Pin, ...]]
    gates: tuple[Proof, ...]
    bench: Bench | None
    warnings: tuple[str, ...]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for what, names in (
            ("node", [node.name for node in self.nodes]),
            ("gate", [proof.gate for proof in self.gates]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"every {what} once")
        return self

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.promoted_at[:10]}-{self.name}.json"

    def text(self) -> str:
        """What is in its file."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=1, sort_keys=True) + "\n"


def folder() -> Path:
    """Where the baselines are: in the checkout, to be committed."""
    return checkout.root() / FOLDER


def known(where: Path | None = None) -> list[Baseline]:
    """All baselines, oldest first. Raises `BASELINE.FILE` for a file that is none."""
    found = [load(path) for path in sorted((where or folder()).glob("*.json"))]
    return sorted(found, key=lambda each: (each.promoted_at, each.name))


def newest(baselines: Iterable[Baseline], fleet: str) -> Baseline | None:
    """What is desired of `fleet`; `baselines` are oldest first. None: nothing was ever promoted."""
    return next((each for each in reversed(list(baselines)) if each.fleet == fleet), None)


def closure(word: str, fleet: str) -> str:
    """The head's closure in the baseline `word` of `fleet`; `word` itself when that is no name of one.

    For what cannot be a name no file is read: a broken one keeps nobody from a generation by number.
    """
    if not re.fullmatch(NAME, word):
        return word
    named = [each for each in known() if (each.name, each.fleet) == (word, fleet)]
    return named[0].nodes[0].closure if named else word


def load(path: Path) -> Baseline:
    """The baseline in a file. Raises `BASELINE.FILE`."""
    try:
        found = Baseline.model_validate_json(json.dumps(given.read_json(path)))
    except (OSError, ValueError) as error:
        raise _bad(path, given.fault(error)) from None
    if path.name != found.file:
        raise _bad(path, f"what belongs into {found.file}")
    return found


def check_name(name: str, baselines: Iterable[Baseline]) -> None:
    """Raise `BASELINE.NAME` when `name` is no name, or is taken: a promotion changes no baseline."""
    if not re.fullmatch(NAME, name):
        raise _name("small letters, digits, - and ., 63 at most, a letter first", name, "Choose another.")
    for each in baselines:
        if each.name == name:
            raise _name(
                "a name that no baseline has",
                f"{name}, promoted at {each.promoted_at}",
                "Choose another name. What was promoted is never changed.",
            )


def schema() -> dict[str, Any]:
    """The JSON Schema of a baseline."""
    return Baseline.model_json_schema(by_alias=True)


def _name(expected: str, found: str, do: str) -> SparkserveError:
    return SparkserveError("BASELINE.NAME", expected=expected, found=found, where=FOLDER, do=do)


def _bad(path: Path, found: str) -> SparkserveError:
    return SparkserveError(
        "BASELINE.FILE",
        expected="a baseline of schema sparkserve.baseline/1",
        found=found,
        where=str(path),
        do="It is written by ./sparkserve promote alone: git checkout gives back what was committed.",
    )
