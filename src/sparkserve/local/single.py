"""A fleet of one node on this machine, without root's network or services: build, start, wait, stop."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve import checkout, disk, nix
from sparkserve.engine import closure as closures
from sparkserve.engine import log, process, procfs, status
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, names, plans
from sparkserve.interrupts import uninterrupted
from sparkserve.local import lock, namespaces, port
from sparkserve.local.fleets import Up, advice
from sparkserve.plan import load as load_plan
from sparkserve.reach.there import Serving
from sparkserve.terminal import console, phase

if TYPE_CHECKING:
    from collections.abc import Generator

    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan
    from sparkserve.reach.there import Part


SILENT_S = 15.0


def bring_up(plan: Plan) -> Up:
    """Make the fleet of this one node serve. Does nothing when it already does.

    A running engine of another fleet id is stopped and replaced. Interrupted or failed, it leaves no process
    and no record of this call. Raises any error of the phases.
    """
    seconds: dict[str, float] = {}
    fleet = plan.fleet.name
    state = checkout.state()
    with disk.guarded(state), lock.held(state, fleet):
        files = NodeFiles(state, fleet, plan.node.name)
        running = _running(files)
        namespaces.check()
        if running is None or running.port != plan.serving.port:
            port.check(plan.serving.host, plan.serving.port)
        disk.check(state)
        path = _build(plan, seconds)
        closure = closures.load(path)
        if running is not None and running.fleet_id != closure.fleet_id:
            with phase(f"Stop the running engine of fleet id {running.fleet_id[:12]}") as detail:
                process.stop(running, files, detail)
            running = None
        if running is not None and _is_silent(running):
            console.print(f"The running engine (pid {running.engine.pid}) is silent; replacing it.")
            process.kill(running, files)
            running = None
        if running is not None:
            return _up(_serving(running, files, plan, seconds), True, seconds)
        return _up(_launch(plan, closure, path, files, seconds), False, seconds)


class Engine:
    """A fleet whose engine is or was on this machine itself, or whose nodes are down."""

    def __init__(self, fleet: str) -> None:
        """Raises `FLEET.NAME` for a name that no fleet has or had."""
        self.name = fleet
        folder = checkout.state() / "log" / fleet
        # A fleet whose files are deleted may still run.
        if not (names.PATTERN.fullmatch(fleet) and folder.is_dir()):
            names.file(fleet)
        self._nodes = [NodeFiles(checkout.state(), fleet, log.stem) for log in sorted(folder.glob("*.log"))]

    def take_down(self) -> bool:
        """Stop the engine and clean up what a crash left. False when there was nothing."""
        found = False
        for files in self._nodes:
            run, lost = _recorded(files)
            found = found or lost or run is not None
            if run is None:
                continue
            what = "Stop" if run.alive() else "Clean up after the dead engine of"
            with phase(f"{what} {self.name}/{files.node}") as detail:
                process.stop(run, files, detail)
        return found

    def report(self) -> list[dict[str, Any]]:
        """See `There.report`."""
        return [status.report(files) for files in self._nodes]

    def advice(self, state: str) -> str:
        """See `There.advice`."""
        return advice(state, self.name)

    @property
    def recorded(self) -> bool:
        """Whether an engine was started here and not taken down since."""
        return any(files.run.exists() for files in self._nodes)

    @property
    def left(self) -> bool:
        """Whether it left logs on this machine."""
        return bool(self._nodes)

    def runs(self) -> list[Run]:
        """The starts that are recorded, of engines that run or are dead. Raises `ENGINE.STATE`."""
        return [run for files in self._nodes if (run := files.load()) is not None]

    def serving(self) -> Serving:
        """See `There.serving`."""
        for files in self._nodes:
            if run := files.load():
                answered = partial(files.answered, run)
                return Serving(status.state(run), "", run.endpoint, run.model, answered)
        return Serving("stopped", "", "", "")

    def plan(self) -> Plan:
        """See `There.plan`."""
        for run in self.runs():
            return load_plan(Path(run.closure) / "plan.json")
        raise self._no_log("no engine")

    def logs(self, lines: int, *, follow: bool, part: Part, node: str | None) -> Generator[str, None, None]:
        """See `There.logs`. Of nodes that are down there is what was kept of their logs."""
        found = [files for files in self._nodes if node in (None, files.node)]
        if part != "engine":
            raise self._no_log(f"only the engine's: its {part} is on nodes, which are not on")
        if not found:
            raise self._no_log("no log")
        if follow and len(found) > 1:
            raise self._no_log("nodes that are down")
        if follow:
            yield from log.follow(found[0].log, lines)
            return
        for files in found:
            begin = f"{files.node} | " if len(found) > 1 else ""
            yield from (f"{begin}{line}" for line in log.last_lines(files.log, lines))

    def _no_log(self, found: str) -> SparkserveError:
        return SparkserveError(
            "ENGINE.STATE",
            expected="a fleet that has the log asked for",
            found=found,
            where=self.name,
            do=f"Start it with: {command('up', self.name)}.",
        )


def _up(run: Run, already: bool, seconds: dict[str, float]) -> Up:
    return Up(run.model, run.endpoint, run.fleet_id, already, run.engine.pid, seconds)


def _recorded(files: NodeFiles) -> tuple[Run | None, bool]:
    """What the record says, and whether an engine was stopped that runs without a whole one."""
    damage = ""
    try:
        if run := files.load():
            return run, False
    except SparkserveError as error:
        damage = f"{error.where} is damaged ({error.found}). "
    lost = process.stop_lost(files)
    files.remove()
    if damage or lost:
        what = "engine stopped" if lost else "no engine runs"
        console.print(f"{damage}{files.fleet}/{files.node}: {what}.")
    return None, lost


def _running(files: NodeFiles) -> Run | None:
    """The engine that runs, after cleaning up what a dead one left."""
    run, _ = _recorded(files)
    if run is not None and not run.alive():
        console.print(f"The last engine of {files.fleet}/{files.node} is dead; cleaning up after it.")
        process.kill(run, files)
        return None
    return run


def _is_silent(run: Run) -> bool:
    """Whether an engine that was ready answers no more. A busy one gets some seconds."""
    with phase("Ask the running engine"):
        return status.state(run, health_s=SILENT_S) == "silent"


def _build(plan: Plan, seconds: dict[str, float]) -> Path:
    from sparkserve.pins import BUILDER, fetch

    begin = time.monotonic()
    fetch.fetch([*BUILDER, plan.engine.package, plan.engine.model], [], None)
    seconds["pins"] = time.monotonic() - begin
    begin = time.monotonic()
    name = f"host-{plan.fleet.name}-{plan.node.name}"
    roots = checkout.state() / "roots"
    roots.mkdir(exist_ok=True)
    with phase(f"Build {name}") as detail:
        path = nix.build([plans.host(plan)], out_link=roots / name, on_line=lambda line: detail(line[:100]))[
            0
        ]
    seconds["build"] = time.monotonic() - begin
    return path


def _launch(
    plan: Plan, closure: closures.Closure, path: Path, files: NodeFiles, seconds: dict[str, float]
) -> Run:
    port.check(plan.serving.host, plan.serving.port)  # again: a build can take minutes
    begin = time.monotonic()
    try:
        with phase(f"Start {plan.serving.model}"):
            # A root of its own: the build's link moves to the next closure while this one still runs.
            nix.keep(path, checkout.state() / "roots" / f"running-{plan.fleet.name}-{plan.node.name}")
            run = process.start(plan, closure, path, files)
        seconds["start"] = time.monotonic() - begin
        return _serving(run, files, plan, seconds)
    except BaseException:
        # By the record, because Ctrl-C may come before the assignment. Not stop: it answers nobody yet, so
        # there is nothing to drain and no reason to wait.
        with uninterrupted():
            started, _ = _recorded(files)
            if started is not None:
                process.kill(started, files)
        raise


def _serving(run: Run, files: NodeFiles, plan: Plan, seconds: dict[str, float]) -> Run:
    from sparkserve.engine import ready

    begin = time.monotonic()
    if run.canary is None and run.up != (me := procfs.find(os.getpid())):
        run = run.model_copy(update={"up": me})
        files.save(run)
    with phase("Wait for a real answer") as detail:
        run = ready.wait(run, files, timeout_s=plan.serving.ready_timeout_s, detail=detail)
    seconds["ready"] = time.monotonic() - begin
    return run
