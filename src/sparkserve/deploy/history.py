"""What a deployer keeps in its state folder: the plan that was printed, and a journal of what it did.

The nodes' journals decide. This one says who did what from here, also when the nodes are gone.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkserve import checkout, disk, utc
from sparkserve.deploy.journal import Journal, journals
from sparkserve.deploy.plan import DeployPlan
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, names
from sparkserve.group import run_files
from sparkserve.local import lock
from sparkserve.output import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.deploy.state import Outcome


class History:
    """Of the fleet's deployments from this state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "journal"
        self._journal: Journal | None = None

    @property
    def open(self) -> bool:
        """Whether a deployment has begun here and has not ended."""
        return self._journal is not None

    def begin(self, plan: DeployPlan, deployer: str) -> None:
        """A deployment is about to begin."""
        journal = Journal.create(self._folder, plan.id)
        journal.append("begun", plan=plan.model_dump(mode="json"), deployer=deployer, at=utc.now())
        self._journal = journal

    def note(self, step: str) -> None:
        """A step is about to begin."""
        if self._journal is not None:
            self._journal.append("noted", step=step, at=utc.now())

    def end(self, outcome: Outcome) -> None:
        """The deployment has ended."""
        if self._journal is not None:
            self._journal.append("ended", outcome=outcome, at=utc.now())
            self._journal = None

    def resumed(self, plan: DeployPlan, outcome: Outcome) -> None:
        """The deployment `plan` has ended, by `--resume`, here or elsewhere; no harm if it is not ours."""
        for journal in journals(self._folder)[-1:]:
            if journal.id == plan.id and journal.records[-1].kind != "ended":
                self._journal = journal
                self.end(outcome)


def state() -> Path:
    """The deployer's state folder: the checkout's; on a node, which has none, one of its own."""
    return checkout.state() if checkout.found() else run_files.STATE / "deployer"


@contextmanager
def changing(fleet: str) -> Iterator[None]:
    """The only command of this state folder that changes the fleet. Raises `FLEET.NAME`."""
    names.check(fleet)
    with disk.guarded(state()), lock.held(state(), fleet):
        yield


def of(fleet: str) -> Path:
    """The folder for what is kept of a fleet's deployments."""
    folder = state() / "deploy" / fleet
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep(folder: Path, what: str, plan: DeployPlan) -> None:
    """Remember that `plan` was printed as that of `what` (deploy, rollback)."""
    write_file(folder / f"{what}.json", plan.model_dump_json(indent=2) + "\n")


def forget(folder: Path, what: str) -> None:
    """It has been done, or has been tried."""
    (folder / f"{what}.json").unlink(missing_ok=True)


def require(folder: Path, what: str, plan: DeployPlan) -> None:
    """Raise `DEPLOY.PLAN` when another plan was printed last. One of another version counts as none."""
    with suppress(OSError, ValidationError):
        kept = DeployPlan.model_validate_json((folder / f"{what}.json").read_bytes())
        if kept.id != plan.id:
            raise SparkserveError(
                "DEPLOY.PLAN",
                expected=f"what was printed: plan {kept.id}, {_words(kept)}",
                found=f"plan {plan.id}, {_words(plan)}: the files or the nodes have changed since",
                where=plan.fleet,
                do=f"{command(what, plan.fleet)} prints what it would do now; then add --apply.",
            )


def _words(plan: DeployPlan) -> str:
    return f"{(plan.base_fleet_id or 'nothing')[:12]} to {plan.target_fleet_id[:12]}"
