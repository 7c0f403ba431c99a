"""What is written down about a running engine, and where: the files of one node below the state folder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sparkserve import given
from sparkserve.engine import procfs
from sparkserve.engine.procfs import Process  # noqa: TC001 - pydantic reads the annotation
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command

if TYPE_CHECKING:
    from pathlib import Path


class Canary(BaseModel):
    """The last real request that the engine answered: unix time, and how long the answer took in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    at: float
    seconds: float


class Run(BaseModel):
    """One start of an engine.

    `monitor` is bubblewrap on this machine, `init` its PID 1 in the engine's pid namespace (when it goes, the
    kernel kills the whole namespace), `engine` the launcher that takes SIGTERM. `canary` is None until
    ready; until then `up` is the command that waits for the first answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_: Literal["sparkserve.run/1"] = Field(default="sparkserve.run/1", alias="schema")
    fleet: str
    node: str
    fleet_id: str
    closure: str
    host: str
    port: int
    model: str
    started_at: float
    boot_id: str
    monitor: Process
    init: Process
    engine: Process
    up: Process | None = None
    canary: Canary | None = None

    @property
    def endpoint(self) -> str:
        """Base URL of the HTTP API."""
        return f"http://{self.host}:{self.port}"

    def alive(self) -> bool:
        """Whether the launcher runs. Its namespace may outlive it: see `leftover`."""
        return self._this_boot() and self.engine.alive()

    def leftover(self) -> bool:
        """Whether anything of this start still runs."""
        return self._this_boot() and (self.init.alive() or self.monitor.alive())

    def _this_boot(self) -> bool:
        return self.boot_id == procfs.boot_id()


class NodeFiles(NamedTuple):
    """The files of one node below the state folder `state`."""

    state: Path
    fleet: str
    node: str

    @property
    def run(self) -> Path:
        """The `Run`, while an engine is or should be there."""
        return self.state / "run" / self.fleet / f"{self.node}.json"

    @property
    def status(self) -> Path:
        """What bubblewrap reports: JSON documents, one a line."""
        return self.state / "run" / self.fleet / f"{self.node}.bwrap"

    @property
    def log(self) -> Path:
        """The engine's output since its last start; the start before that has the suffix `.1`."""
        return self.state / "log" / self.fleet / f"{self.node}.log"

    def prepare(self) -> None:
        """Make the folders, keep the old log as `.1`."""
        self.run.parent.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists():
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))

    def load(self) -> Run | None:
        """The recorded run, None when there is none. Raises `ENGINE.STATE` when the record is damaged."""
        try:
            with given.opened(self.run) as file:
                return Run.model_validate_json(given.limited(file))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SparkserveError(
                "ENGINE.STATE",
                expected="a record of schema sparkserve.run/1",
                found=given.fault(error),
                where=str(self.run),
                do=f"Run {command('down', self.fleet)}: it stops the engine and removes the damaged record.",
            ) from None

    def save(self, run: Run) -> None:
        """Write the record in one step: a reader sees the old or the new one, never half."""
        part = self.run.with_suffix(".part")
        part.write_text(run.model_dump_json(by_alias=True, indent=2) + "\n")
        part.replace(self.run)

    def answered(self, run: Run, seconds: float) -> Run:
        """Record that the engine of `run` has just answered a request in `seconds`.

        Unless it was stopped or replaced meanwhile: then nothing is written.
        """
        run = run.model_copy(update={"canary": Canary(at=time.time(), seconds=round(seconds, 3))})
        now = self.load()
        if now is not None and now.engine == run.engine:
            self.save(run)
        return run

    def remove(self) -> None:
        """Forget the run. The logs stay."""
        for path in (self.run, self.status, self.run.with_suffix(".part")):
            path.unlink(missing_ok=True)
