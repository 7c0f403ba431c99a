"""The node that deploy-rs changes: who else may be at it, what is current, and how that is changed."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.deploy import current
from sparkserve.deploy.files import Files
from sparkserve.deploy.member import Member
from sparkserve.deployrs import session as sessions
from sparkserve.errors import SparkserveError
from sparkserve.host import effects, prepare, record
from sparkserve.host.system import System
from sparkserve.host.there import There, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sparkserve.deployrs.log import Log
    from sparkserve.deployrs.session import Before, Session

RANK = "sparkserve-rank.service"
HOLD = f"{commands.HOLDS}/deploy-rs"  # a closure that was copied and has no generation yet
_LINK = re.compile(r"sparkserve-([0-9]+)-link")


def _run(program: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A closure's program. Its words come through a pipe: when the deployer's connection is lost, who writes
    to that dies, also an activation in the middle of a rollback."""
    return subprocess.run(
        [program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=program.parent,
        env={**os.environ, **env},
        check=False,
    )


@dataclass(frozen=True)
class Node:
    """A node that is changed outside of a deployment of sparkserve. `call` runs a closure's program."""

    system: System = field(default_factory=System)
    call: Callable[[Path, Mapping[str, str]], subprocess.CompletedProcess[str]] = _run

    @contextmanager
    def alone(self) -> Iterator[int]:
        """Nobody else activates by deploy-rs or begins a deployment meanwhile; the node's epoch.

        Raises `DEPLOY.LEASE` while somebody does, or a deployment is open.
        """
        folder = sessions.folder(self.system)
        with Member(self.system).unleased() as known:
            Files().folder(folder)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise SparkserveError(
                        "DEPLOY.LEASE",
                        expected="one activation by deploy-rs at a time",
                        found="another one, which goes on or waits for its confirmation",
                        where=self.system.name,
                        do="Wait for its end: it takes no longer than confirmTimeout.",
                    ) from None
                yield known.epoch
            finally:
                os.close(fd)

    def before(self) -> Before:
        """What is current and in effect. Raises `NODE.CLOSURE` for what is not this node's."""
        known, now = record.load(self.system), current.current(self.system)
        if now is not None:
            current.ours(self.system, now.path, known)
        return sessions.Before(generation=now, in_effect=known.closure)

    def check(self, closure: str) -> None:
        """Raise `NODE.CLOSURE` unless `closure` is this node's."""
        current.ours(self.system, closure, record.load(self.system))

    def stopped(self) -> None:
        """Raise `NODE.ACTIVATE` while the group's supervisor runs here, with an engine or soon with one."""
        if effects.running(self.system, [RANK]):
            raise SparkserveError(
                "NODE.ACTIVATE",
                expected="the group stopped, on all nodes: deploy-rs changes one after the other",
                found=f"{RANK} runs, and nothing was changed",
                where=self.system.name,
                do=f"On every node: systemctl stop {RANK}. Then the same again. All of that is done by "
                "./sparkserve deploy.",
            )

    def told(self, program: str, env: Mapping[str, str], log: Log) -> int:
        """Run a program of a closure, and say what it says; its exit code."""
        log.detail(" ".join([*(f"{name}={value}" for name, value in env.items()), program]))
        done = self.call(self.system.at(program), env)
        for line in done.stdout.splitlines():
            log.say(line)
        return done.returncode

    def newest(self) -> int:
        """The highest number of a generation of the profile; 0 for none."""
        return max(self._numbers(), default=0)

    def hold(self, closure: str | None) -> None:
        """Keep what was copied from the garbage collector, until it has a generation; None: no more."""
        self._put(HOLD, There(kind="link", value=closure) if closure else None)

    def switch(self, closure: str) -> None:
        """Make `closure` the current generation."""
        self._nix_env("--set", closure)
        effects.change(self.system, "sync", "-f", "/nix")

    def switch_back(self, session: Session) -> None:
        """Make the generation from before `session` current, and delete those that are of the session."""
        old, now = session.before.generation, current.current(self.system)
        if old is not None and now != old:
            kept = self.system.at(f"{commands.PROFILE}-{old.generation}-link")
            there = kept.is_symlink() and os.readlink(kept) == old.path  # noqa: PTH115 - as it is
            self._nix_env(*(("--switch-generation", str(old.generation)) if there else ("--set", old.path)))
        if old is None:
            self._put(commands.PROFILE, None)
        for number, path in self._numbers().items():
            if number > session.newest and path == session.closure:
                self._put(f"{commands.PROFILE}-{number}-link", None)
        effects.change(self.system, "sync", "-f", "/nix")

    def _put(self, path: str, what: There | None) -> None:
        self.system.step(f"{'put' if what else 'remove'} {path}")
        put(self.system.at(path), what)

    def _numbers(self) -> dict[int, str]:
        profiles = self.system.at(commands.PROFILE).parent
        links = {path: _LINK.fullmatch(path.name) for path in sorted(profiles.glob("*-link"))}
        return {int(name[1]): os.readlink(path) for path, name in links.items() if name}  # noqa: PTH115

    def _nix_env(self, *words: str) -> None:
        # Neither sudo's PATH nor that of ssh without a login shell has to have Nix.
        folders = (*prepare.COMMON, prepare.DEFAULT_PROFILE)
        programs = [f"{folder}/nix-env" for folder in folders]
        found = next((program for program in programs if self.system.at(program).exists()), None)
        if found is None:
            raise SparkserveError(
                "HOST.SYSTEM",
                expected="Nix on the node",
                found=f"no nix-env in {', '.join(folders)}",
                where=self.system.name,
                do="sudo ./sparkserve host prepare shows what the node needs.",
            )
        effects.change(self.system, found, "--profile", str(self.system.at(commands.PROFILE)), *words)
