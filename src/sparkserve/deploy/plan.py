"""What a deployment is going to do, said before it begins and kept by every node while it goes on."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sparkserve.names import FleetName, GateName, Name  # noqa: TC001 - pydantic needs them at run time

StorePath = Annotated[str, Field(pattern=r"^/[^\x00-\x20\x7f]+$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, serialize_by_alias=True)


class Base(_Frozen):
    """What is current on a node before: the number of the generation, and its host closure."""

    generation: Annotated[int, Field(ge=1)]
    path: StorePath


class Member(_Frozen):
    """One node. `base` is null on a node that has never had a generation; `bytes` are to be copied to it."""

    name: Name
    base: Base | None
    target: StorePath
    bytes: Annotated[int, Field(ge=0)]


class Downtime(_Frozen):
    """For how long the endpoint is expected not to answer, and in words what that is taken from."""

    seconds: Annotated[float, Field(ge=0)]
    source: Name


class DeployPlan(_Frozen):
    """All members in rank order, the head first; the fleet ids before (null: none) and after.

    `gates` are run before the deployment is kept.
    """

    schema_: Literal["sparkserve.deploy/1"] = Field(default="sparkserve.deploy/1", alias="schema")
    fleet: FleetName
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    base_fleet_id: str | None
    target_fleet_id: Name
    gates: tuple[GateName, ...] = ()
    downtime: Downtime | None = None

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({member.name for member in self.members}) != len(self.members):
            raise ValueError("every member once")
        return self

    @property
    def id(self) -> str:
        """Twelve hex digits, the same for plans that do the same: bytes and seconds do not count."""
        value = self.model_dump(
            mode="json", exclude={"downtime": True, "members": {"__all__": {"bytes": True}}}
        )
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def head(self) -> Member:
        """The member of rank 0, whose journal has the decision."""
        return self.members[0]

    def member(self, name: str) -> Member | None:
        """The member called `name`; None when it is none of them."""
        return next((member for member in self.members if member.name == name), None)
