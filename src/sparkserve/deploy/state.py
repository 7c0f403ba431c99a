"""What a node knows of its deployments, made of its journals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sparkserve.deploy.plan import DeployPlan, StorePath
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sparkserve.deploy.journal import Journal, Record

Outcome = Literal["keep", "undo"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Deployment(_Part):
    """One that is open: the node is leased to `deployer` since then, who alone knows `epoch`.

    `steps` are those noted, in order. `since` is the time of its last `begin` or `take`, in UTC.
    """

    id: str
    epoch: Annotated[int, Field(ge=1)]
    plan: DeployPlan
    steps: tuple[str, ...] = ()
    decided: Outcome | None = None
    deployer: str
    since: str


class Past(_Part):
    """One that has ended. `path` and `generation` are what was current after it, null for nothing."""

    id: str
    epoch: Annotated[int, Field(ge=1)]
    outcome: Outcome
    path: StorePath | None
    generation: int | None
    ended_at: str


class State(_Part):
    """A node's deployments: the open one, and those that have ended, oldest first.

    An id may be in `past` more than once: the same plan, tried again after it was undone.
    """

    open: Deployment | None = None
    past: tuple[Past, ...] = ()

    @property
    def epoch(self) -> int:
        """The highest epoch so far. None is given twice, so that no stale deployer has a later one's."""
        if self.open is not None:
            return self.open.epoch
        return self.past[-1].epoch if self.past else 0


def state(journals: Iterable[Journal]) -> State:
    """What the journals, oldest first, say together. Raises `DEPLOY.JOURNAL` for what cannot be."""
    found = State()
    for journal in journals:
        try:
            if found.open is not None:
                raise ValueError("one that begins while another is open")
            for record in journal.records:
                found = _after(found, journal.id, record)
        except (ValueError, KeyError, TypeError) as error:
            raise _impossible(journal, error) from None
    return found


def _after(state: State, id: str, record: Record) -> State:
    now, data = state.open, record.data
    if now is None:
        if record.kind != "begun" or data["epoch"] <= state.epoch:
            raise ValueError(f"{record.kind} where nothing is open")
        return State(open=_deployment(id, data), past=state.past)
    match record.kind:
        case "taken" if data["epoch"] > now.epoch:
            update = {"epoch": data["epoch"], "deployer": data["deployer"], "since": data["at"]}
        case "noted" if data["step"] not in now.steps:
            update = {"steps": (*now.steps, data["step"])}
        case "decided" if now.decided is None:
            update = {"decided": data["outcome"]}
        case "ended" if now.decided is not None:
            return State(past=(*state.past, _past(now, now.decided, data)))
        case _:
            raise ValueError(f"{record.kind} after {now.decided or 'begun'}")
    return State(open=Deployment.model_validate({**dict(now), **update}), past=state.past)


def _deployment(id: str, data: Mapping[str, Any]) -> Deployment:
    found = Deployment(
        id=id,
        epoch=data["epoch"],
        plan=DeployPlan.model_validate_json(json.dumps(data["plan"])),
        deployer=data["deployer"],
        since=data["at"],
    )
    if found.plan.id != id:
        raise ValueError(f"the plan {found.plan.id}")
    return found


def _past(now: Deployment, outcome: Outcome, data: Mapping[str, Any]) -> Past:
    return Past(
        id=now.id,
        epoch=now.epoch,
        outcome=outcome,
        path=data["path"],
        generation=data["generation"],
        ended_at=data["at"],
    )


def leased(now: Deployment, where: str) -> SparkserveError:
    """The error for the node `where`, which a deployment has."""
    return SparkserveError(
        "DEPLOY.LEASE",
        expected="no open deployment",
        found=f"{now.id} to {now.plan.target_fleet_id[:12]}, by {now.deployer} since {now.since}",
        where=where,
        do="Wait for its end. If its deployer is gone: " + command("deploy --resume", now.plan.fleet),
    )


def _impossible(journal: Journal, error: Exception) -> SparkserveError:
    said = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return SparkserveError(
        "DEPLOY.JOURNAL",
        expected="records in the order in which sparkserve writes them",
        found=said,
        where=str(journal.path),
        do="Somebody edited it, or it is of another version. Find out how that deployment ended; then move "
        "the file out of the folder.",
    )
