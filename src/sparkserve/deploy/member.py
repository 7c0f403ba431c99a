"""A node's side of a deployment. It runs on the node, as root, and knows nothing of the other nodes.

The open deployment in the node's journal is the lease: while it is open no other begins. Who continues it
raises its epoch, and whoever had it before is refused from then on, however late his commands come. What a
node knows is in `sparkserve.deploy.state`.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkserve import commands, disk, utc
from sparkserve.deploy import current
from sparkserve.deploy.files import Files
from sparkserve.deploy.journal import Journal, journals
from sparkserve.deploy.state import State, leased, state
from sparkserve.errors import SparkserveError, not_root
from sparkserve.fleet import command
from sparkserve.group import run_files
from sparkserve.host.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.state import Deployment, Outcome

# GC roots. The profile alone would not do: `nix-collect-garbage -d` deletes all but its current generation.
TARGET = f"{commands.HOLDS}/deploy"
BASE = f"{commands.HOLDS}/deploy-base"
KEPT = f"{commands.HOLDS}/kept"  # the target of the last deployment that was kept
LOCK_S = 30.0  # a busy core may let its holder wait
EFFECT_S = 45.0  # for what a deployer that is gone has begun: most of it is seconds
_POLL_S = 0.02


@dataclass(frozen=True)
class Member:
    """The node that the commands work on. Every command that changes it returns what `look` then says.

    Each raises `DEPLOY.JOURNAL` for a damaged journal, `HOST.DISK` for a full disk and `HOST.ROOT`; those
    that take an id and an epoch raise `DEPLOY.FENCED` when these are not, or no more, the node's.
    """

    system: System = field(default_factory=System)
    files: Files = field(default_factory=Files)
    now: Callable[[], str] = utc.now

    @property
    def folder(self) -> Path:
        """Where the journals are."""
        return self.system.at(f"{run_files.STATE}/deploy/journal")

    def look(self) -> State:
        """What the node knows. Changes nothing."""
        if not self.folder.is_dir():
            return State()
        with self._locked(fcntl.LOCK_SH) as found:
            return state(found)

    def begin(self, plan: DeployPlan, deployer: str) -> State:
        """Lease the node to `deployer` (another text for each process) for `plan`; hold its target and base.

        Again by the same deployer, whose answer was lost: nothing more happens. Raises `DEPLOY.LEASE` while
        another one is open, else as `current.check`.
        """
        with self._locked() as found:
            known = state(found)
            if known.open is not None:
                if (known.open.id, known.open.deployer) == (plan.id, deployer):
                    return known
                raise leased(known.open, self.system.name)
            current.check(self.system, plan)
            part = current.planned(self.system, plan)
            self._hold(TARGET, part.target)
            if part.base is not None:
                self._hold(BASE, part.base.path)
            found.append(Journal.create(self.folder, plan.id, self.files))
            whole = plan.model_dump(mode="json")
            return self._append(found, "begun", epoch=known.epoch + 1, plan=whole, deployer=deployer)

    def take(self, id: str, epoch: int, deployer: str) -> State:
        """Go on with an open deployment in place of whoever had it, who is refused from now on.

        What he has begun on the node ends before that. Raises `DEPLOY.LEASE` when it does not.
        """
        with self._locked() as found:
            self._mine(state(found), id, epoch)
        fd = self._effects(EFFECT_S)
        try:
            with self._locked() as found:
                self._mine(state(found), id, epoch)
                return self._append(found, "taken", epoch=epoch + 1, deployer=deployer)
        finally:
            os.close(fd)

    def effect(self, id: str, epoch: int, step: str) -> int:
        """Let the open deployment change the node: a descriptor, and until it is closed nobody takes over.

        A program that is to make the change inherits it, and holds it however this process ends.
        """
        fd = self._effects(LOCK_S)
        try:
            self.note(id, epoch, step)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _effects(self, seconds: float) -> int:
        """The lock on effects: not that of the journal, which can be read while the node changes."""
        try:
            fd = os.open(self.folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._fenced("an open deployment", "no journal") from None
        try:
            self._lock(fd, fcntl.LOCK_EX, seconds)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def note(self, id: str, epoch: int, *steps: str) -> State:
        """Write down that these are about to be done, or are done; no harm when one is noted already."""
        with self._locked() as found:
            known = self._mine(state(found), id, epoch).steps
            for step in steps:
                if step not in known:
                    self._append(found, "noted", step=step)
            return state(found)

    def decide(self, id: str, epoch: int, outcome: Outcome) -> State:
        """Write down how the deployment ends. Raises `DEPLOY.FENCED` when the other way was decided."""
        with self._locked() as found:
            now = self._mine(state(found), id, epoch)
            if now.decided is None:
                return self._append(found, "decided", outcome=outcome)
            if now.decided != outcome:
                raise self._fenced(f"the decision {now.decided}, made before", outcome)
            return state(found)

    def end(self, id: str, epoch: int) -> State:
        """Give the lease back as it was decided; no harm when it is ended already.

        A target that is kept is held until the next is. Raises `DEPLOY.BASE` unless the target is current
        (keep), or what was before (undo: the base's path; after a first deploy there is no profile), and
        `DEPLOY.OPEN` before the decision.
        """
        with self._locked() as found:
            known = state(found)
            last = known.past[-1] if known.past and known.open is None else None
            if last is not None and (last.id, last.epoch) == (id, epoch):
                self._release()
                return known
            now = self._mine(known, id, epoch)
            if now.decided is None:
                raise self._undecided(now)
            left = current.after(self.system, now.plan, now.decided)
            if now.decided == "keep":
                self._hold(KEPT, current.planned(self.system, now.plan).target)
            ended = self._append(found, "ended", path=left and left.path, generation=left and left.generation)
            self._release()
            return ended

    @contextmanager
    def unleased(self) -> Iterator[State]:
        """No deployment begins while the body runs, which changes the node by other means.

        Raises `DEPLOY.LEASE` while one is open.
        """
        with self._locked(fcntl.LOCK_SH) as found:
            known = state(found)
            if known.open is not None:
                raise leased(known.open, self.system.name)
            yield known

    @contextmanager
    def _locked(self, how: int = fcntl.LOCK_EX) -> Iterator[list[Journal]]:
        """The journals, for one command at a time. What the disk refuses becomes an error in words."""
        folder = self.folder
        try:
            with disk.guarded(folder):
                self.files.folder(folder)
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    self._lock(fd, how, LOCK_S)
                    yield journals(folder, self.files)
                finally:
                    os.close(fd)
        except PermissionError as error:
            raise not_root(str(error.filename or folder)) from None

    def _lock(self, fd: int, how: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                return fcntl.flock(fd, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise self._busy(seconds) from None
                time.sleep(_POLL_S)

    def _mine(self, known: State, id: str, epoch: int) -> Deployment:
        """The open deployment. Raises `DEPLOY.FENCED` unless it is `id` at `epoch`."""
        now = known.open
        if now is None:
            raise self._fenced("no open deployment", f"{id} at epoch {epoch}")
        if (now.id, now.epoch) != (id, epoch):
            expected = f"{now.id} at epoch {now.epoch}, of {now.deployer} since {now.since}"
            raise self._fenced(expected, f"{id} at epoch {epoch}")
        return now

    def _append(self, found: list[Journal], kind: str, **data: object) -> State:
        found[-1].append(kind, **data, at=self.now())
        return state(found)

    def _hold(self, path: str, target: str) -> None:
        self.files.folder(self.system.at(commands.HOLDS))
        self.files.link(self.system.at(path), target)

    def _release(self) -> None:
        for path in (TARGET, BASE):
            self.files.remove(self.system.at(path))

    def _busy(self, seconds: float) -> SparkserveError:
        return SparkserveError(
            "DEPLOY.LEASE",
            expected="one command at a time for the node's deployment",
            found=f"another one that has not ended for {seconds:.0f} s",
            where=self.system.name,
            do="Look for it on the node: ps ax | grep -e 'deploy member' -e activate-rs",
        )

    def _fenced(self, expected: str, found: str) -> SparkserveError:
        return SparkserveError(
            "DEPLOY.FENCED",
            expected=expected,
            found=found,
            where=self.system.name,
            do="Another deployer has gone on with it, or has ended it. To see how: ./sparkserve generations.",
        )

    def _undecided(self, now: Deployment) -> SparkserveError:
        return SparkserveError(
            "DEPLOY.OPEN",
            expected="a decision before the end",
            found="none",
            where=f"deployment {now.id} on {self.system.name}",
            do=f"{command('deploy --resume', now.plan.fleet)} decides and ends it.",
        )
