"""A node's side of a deployment. It runs on the node, as root, and knows nothing of the other nodes.

The open deployment in the node's journal is the lease: while it is open no other begins. Who continues it
raises its epoch, and whoever had it before is refused from then on, however late his commands come. What a
node knows is in `sparkserve.deploy.state`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkserve import commands, disk
from sparkserve.deploy.files import Files
from sparkserve.deploy.journal import Journal, journals
from sparkserve.deploy.plan import Base
from sparkserve.deploy.state import State, state
from sparkserve.errors import SparkserveError, not_root
from sparkserve.group import run_files
from sparkserve.host import identity, record
from sparkserve.host.system import System
from sparkserve.host.there import look as look_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.plan import Member as Planned
    from sparkserve.deploy.state import Deployment, Outcome

HOLD = f"{commands.HOLDS}/deploy"  # the target of the open deployment
KEPT = f"{commands.HOLDS}/kept"  # that of the last one that was kept
LOCK_S = 10.0
_POLL_S = 0.02


def _utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True)
class Member:
    """The node that the commands work on. Every command that changes it returns what `look` then says."""

    system: System = field(default_factory=System)
    files: Files = field(default_factory=Files)
    now: Callable[[], str] = _utc

    @property
    def folder(self) -> Path:
        """Where the journals are."""
        return self.system.at(f"{run_files.STATE}/deploy/journal")

    def look(self) -> State:
        """What the node knows. Changes nothing. Raises `DEPLOY.JOURNAL`."""
        with self._locked(fcntl.LOCK_SH):
            return state(journals(self.folder, self.files))

    def begin(self, plan: DeployPlan, deployer: str) -> State:
        """Lease the node to `deployer` (another text for each process) for `plan`, and hold its target.

        Again by the same deployer, whose answer was lost: nothing more happens. Raises `DEPLOY.LEASE` while
        another one is open, `DEPLOY.BASE` when what is current is not what the plan starts from, and
        `NODE.CLOSURE` when it, or the target, is not this node's.
        """
        with self._locked():
            known = self._state()
            if known.open is not None:
                if (known.open.id, known.open.deployer) == (plan.id, deployer):
                    return known
                raise self._leased(known.open)
            planned = self._check(plan)
            self._hold(HOLD, planned.target)
            journal = Journal.create(self.folder, plan.id, self.files)
            journal.append(
                "begun",
                epoch=known.epoch + 1,
                plan=plan.model_dump(mode="json"),
                deployer=deployer,
                at=self.now(),
            )
            return self._state()

    def take(self, id: str, epoch: int, deployer: str) -> State:
        """Go on with an open deployment in place of whoever had it, who is refused from now on."""
        with self._locked():
            self._mine(id, epoch)
            return self._append("taken", epoch=epoch + 1, deployer=deployer)

    def note(self, id: str, epoch: int, step: str) -> State:
        """Write down that `step` is about to be done, or is done; no harm when it is noted already."""
        with self._locked():
            if step in self._mine(id, epoch).steps:
                return self._state()
            return self._append("noted", step=step)

    def decide(self, id: str, epoch: int, outcome: Outcome) -> State:
        """Write down how the deployment ends. Raises `DEPLOY.FENCED` when the other way was decided."""
        with self._locked():
            now = self._mine(id, epoch)
            if now.decided == outcome:
                return self._state()
            if now.decided is not None:
                raise self._fenced(f"the decision {now.decided}, made before", outcome)
            return self._append("decided", outcome=outcome)

    def end(self, id: str, epoch: int) -> State:
        """Give the lease back as it was decided; no harm when it is ended already.

        What is kept is held for ever, until the next is. Raises `DEPLOY.BASE` unless the target is current
        (keep), or what was before (undo; after an undone first deploy the node has no profile), and
        `DEPLOY.OPEN` before the decision.
        """
        with self._locked():
            known = self._state()
            if known.open is None and known.past and (known.past[-1].id, known.past[-1].epoch) == (id, epoch):
                self._release()
                return known
            now = self._mine(id, epoch)
            if now.decided is None:
                raise SparkserveError(
                    "DEPLOY.OPEN",
                    expected="a decision before the end",
                    found="none",
                    where=self._where(id),
                    do="./sparkserve deploy --resume decides and ends it.",
                )
            current = self._current()
            planned = self._planned(now.plan)
            path = None if current is None else current.path
            wanted = planned.target if now.decided == "keep" else planned.base and planned.base.path
            if path != wanted:
                raise self._inconsistent(f"{wanted or 'no generation'}, after {now.decided}", current)
            if now.decided == "keep":
                self._hold(KEPT, planned.target)
            generation = None if current is None else current.generation
            after = self._append("ended", path=path, generation=generation)
            self._release()
            return after

    @contextmanager
    def _locked(self, how: int = fcntl.LOCK_EX) -> Iterator[None]:
        """One command at a time changes a node; what the disk refuses becomes an error in words."""
        folder = self.folder.parent
        try:
            if how == fcntl.LOCK_EX:
                self.files.folder(folder)
            elif not folder.is_dir():
                yield
                return
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._lock(fd, how)
                yield
            finally:
                os.close(fd)
        except PermissionError as error:
            raise not_root(str(error.filename or folder)) from None
        except OSError as error:
            if disk.met(error):
                raise disk.full(str(error.filename or folder)) from None
            raise

    def _lock(self, fd: int, how: int) -> None:
        end = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(fd, how | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    raise SparkserveError(
                        "DEPLOY.LEASE",
                        expected="one command at a time for the node's deployment",
                        found=f"another one that has not ended for {LOCK_S:.0f} s",
                        where=self.system.name,
                        do="Look for it on the node: ps ax | grep 'deploy member'. Wait for its end.",
                    ) from None
                time.sleep(_POLL_S)

    def _state(self) -> State:
        return state(journals(self.folder, self.files))

    def _mine(self, id: str, epoch: int) -> Deployment:
        """The open deployment. Raises `DEPLOY.FENCED` unless it is `id` at `epoch`."""
        now = self._state().open
        if now is None:
            raise self._fenced("no open deployment", f"{id} at epoch {epoch}")
        if (now.id, now.epoch) != (id, epoch):
            found = f"{now.id} at epoch {now.epoch}, of {now.deployer} since {now.since}"
            raise self._fenced(found, f"{id} at epoch {epoch}")
        return now

    def _append(self, kind: str, **data: object) -> State:
        found = journals(self.folder, self.files)
        found[-1].append(kind, **data, at=self.now())
        return state(found)

    def _check(self, plan: DeployPlan) -> Planned:
        """This node's part of a plan that it can begin. Raises as `begin`."""
        planned, current = self._planned(plan), self._current()
        known = record.load(self.system)
        if current is not None:
            self._ours(current.path, known)
        if current != planned.base:
            raise self._inconsistent(_words(planned.base), current)
        if known.closure not in (None, current and current.path):
            raise self._inconsistent(f"in effect what is current: {known.closure}", current)
        self._ours(planned.target, known)
        return planned

    def _planned(self, plan: DeployPlan) -> Planned:
        name = self.system.name.partition(".")[0]
        if (found := plan.member(name)) is None:
            raise SparkserveError(
                "NODE.CLOSURE",
                expected=f"a member of {plan.fleet}: {', '.join(member.name for member in plan.members)}",
                found=f"the host name {name}",
                where=self.system.name,
                do="The address of a node leads to another one: look at the fleet's addresses.",
            )
        return found

    def _ours(self, closure: str, known: record.Record) -> None:
        """Raise `NODE.CLOSURE` unless `closure` is there and for this node."""
        path = self.system.at(closure)
        try:
            node = json.loads((path / "plan.json").read_bytes())["node"]["name"]
        except (OSError, ValueError, KeyError, TypeError):
            raise SparkserveError(
                "NODE.CLOSURE",
                expected=f"a host closure of {self.system.name}",
                found="no plan.json of a node in it" if path.is_dir() else "nothing there",
                where=closure,
                do="What is not of sparkserve is left alone: give the profile another name. What is gone "
                "can be copied again: ./sparkserve deploy.",
            ) from None
        identity.check(self.system, path, node, known)

    def _current(self) -> Base | None:
        """The current generation of the node's profile; None without one."""
        there = look_at(self.system.at(commands.PROFILE))
        if there is None:
            return None
        number = re.fullmatch(r"sparkserve-([0-9]+)-link", there.value.rpartition("/")[2])
        link = look_at(self.system.at(commands.PROFILE).parent / there.value)
        if there.kind != "link" or number is None or link is None or link.kind != "link":
            raise self._inconsistent(f"a generation of the profile {commands.PROFILE}", None, there.value)
        return Base(generation=int(number[1]), path=link.value)

    def _hold(self, path: str, target: str) -> None:
        self.files.folder(self.system.at(commands.HOLDS))
        self.files.link(self.system.at(path), target)

    def _release(self) -> None:
        self.files.remove(self.system.at(HOLD))

    def _where(self, id: str) -> str:
        return f"deployment {id} on {self.system.name}"

    def _leased(self, now: Deployment) -> SparkserveError:
        return SparkserveError(
            "DEPLOY.LEASE",
            expected="no open deployment",
            found=f"{now.id} of {now.plan.fleet}, of {now.deployer} since {now.since}",
            where=self.system.name,
            do="Wait for its end. When its deployer is gone: ./sparkserve deploy --resume",
        )

    def _fenced(self, expected: str, found: str) -> SparkserveError:
        return SparkserveError(
            "DEPLOY.FENCED",
            expected=expected,
            found=found,
            where=self.system.name,
            do="Another deployer has gone on with it, or ended it: look at ./sparkserve generations.",
        )

    def _inconsistent(self, expected: str, current: Base | None, found: str = "") -> SparkserveError:
        return SparkserveError(
            "DEPLOY.BASE",
            expected=expected,
            found=found or _words(current),
            where=self.system.name,
            do="Something else has changed it since the plan was made: ./sparkserve deploy makes a new one.",
        )


def _words(base: Base | None) -> str:
    return "no generation" if base is None else f"generation {base.generation}, {base.path}"
