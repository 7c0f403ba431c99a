"""A fleet of one node on this machine, without root's network or services: build, start, wait, stop."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import checkout, nix
from sparkserve import plan as plans
from sparkserve.engine import closure as closures
from sparkserve.engine import process
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError
from sparkserve.local import lock, namespaces, port
from sparkserve.output import console, phase

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan

# Room for logs, records and GC links; less means that the engine dies while writing its log.
STATE_BYTES = 16 << 20


class Up(NamedTuple):
    """What `up` did: the run, whether it was there before, and the seconds of each phase."""

    run: Run
    already: bool
    seconds: dict[str, float]


def bring_up(fleet: str) -> Up:
    """Make the fleet serve what its files say. Does nothing when it already does.

    A running engine of another fleet id is stopped and replaced. Interrupted or failed, it leaves no process
    and no record of this call. Raises any error of the phases.
    """
    seconds: dict[str, float] = {}
    plan = _plan(fleet)
    with lock.held(checkout.state(), fleet):
        files = NodeFiles(checkout.state(), fleet, plan.node.name)
        running = _running(files)
        namespaces.check()
        if running is None or running.port != plan.serving.port:
            port.check(plan.serving.host, plan.serving.port)
        _space(files.state)
        path = _build(plan, seconds)
        closure = closures.load(path)
        if running is not None and running.fleet_id != closure.fleet_id:
            with phase(f"Stop the running engine of fleet id {running.fleet_id[:12]}") as detail:
                process.stop(running, files, detail)
            running = None
        if running is not None:
            return Up(_serving(running, files, plan, seconds), True, seconds)
        return Up(_launch(plan, closure, path, files, seconds), False, seconds)


def take_down(fleet: str) -> bool:
    """Stop the fleet and clean up what a crash left. False when there was nothing."""
    found = False
    with lock.held(checkout.state(), fleet):
        for files in nodes(fleet):
            try:
                run = files.load()
            except SparkserveError as error:
                console.print(f"{error.where} is damaged and removed ({error.found}).", markup=False)
                run = None
                files.remove()
            if run is None:
                continue
            found = True
            what = "Stop" if run.alive() else "Clean up after the dead engine of"
            with phase(f"{what} {fleet}/{files.node}") as detail:
                process.stop(run, files, detail)
    return found


def nodes(fleet: str) -> list[NodeFiles]:
    """The nodes of `fleet` that have or had an engine. Raises `FLEET.NAME` for a name that no fleet has."""
    named(fleet)
    folder = checkout.state() / "log" / fleet
    return [NodeFiles(checkout.state(), fleet, log.stem) for log in sorted(folder.glob("*.log"))]


def named(fleet: str) -> None:
    """Raise `FLEET.NAME` unless `hosts/` has this fleet: the name becomes a path and a Nix attribute."""
    hosts = checkout.root() / "hosts"
    if re.fullmatch(r"[a-z0-9][a-z0-9-]*", fleet) and (hosts / fleet / "fleet.nix").exists():
        return
    known = sorted(path.parent.name for path in hosts.glob("*/fleet.nix"))
    raise SparkserveError(
        "FLEET.NAME",
        expected=f"one of the fleets {', '.join(known) or '(none)'}",
        found=fleet,
        where=str(hosts),
        do="Name one of these, or make one: ./sparkserve fleet new NAME.",
    )


def _plan(fleet: str) -> Plan:
    named(fleet)
    with phase("Evaluate the plan"):
        found = [plans.parse(value) for value in nix.eval_json(f"lib.fleets.{fleet}.plans").values()]
    if len(found) != 1:
        raise SparkserveError(
            "FLEET.OPTION",
            expected="a fleet of one node: several on one machine come with a later version",
            found=f"{len(found)} nodes",
            where=f"hosts/{fleet}/fleet.nix",
            do="Use the fleet local-single.",
        )
    return found[0]


def _running(files: NodeFiles) -> Run | None:
    """The engine that runs, after cleaning up what a dead one left."""
    try:
        run = files.load()
    except SparkserveError as error:
        console.print(f"{error.where} is damaged and removed ({error.found}).", markup=False)
        files.remove()
        return None
    if run is not None and not run.alive():
        console.print(f"The last engine of {files.fleet}/{files.node} is dead; cleaning up after it.")
        process.kill(run, files)
        return None
    return run


def _build(plan: Plan, seconds: dict[str, float]) -> Path:
    from sparkserve.pins import fetch

    begin = time.monotonic()
    fetch.fetch(["base", "tools", "harness", plan.engine.package, plan.engine.model], [], None)
    seconds["pins"] = time.monotonic() - begin
    begin = time.monotonic()
    name = f"host-{plan.fleet.name}-{plan.node.name}"
    roots = checkout.state() / "roots"
    roots.mkdir(exist_ok=True)
    with phase(f"Build {name}") as detail:
        path = nix.build([name], out_link=roots / name, on_line=lambda line: detail(line[:100]))[0]
    seconds["build"] = time.monotonic() - begin
    return path


def _launch(
    plan: Plan, closure: closures.Closure, path: Path, files: NodeFiles, seconds: dict[str, float]
) -> Run:
    port.check(plan.serving.host, plan.serving.port)  # again: a build can take minutes
    begin = time.monotonic()
    try:
        with phase(f"Start {plan.serving.model}"):
            run = process.start(plan, closure, path, files)
        seconds["start"] = time.monotonic() - begin
        return _serving(run, files, plan, seconds)
    except BaseException:
        # By the record, because Ctrl-C may come before the assignment. Not stop: it answers nobody yet, so
        # there is nothing to drain and no reason to wait.
        started = files.load()
        if started is not None:
            process.kill(started, files)
        raise


def _serving(run: Run, files: NodeFiles, plan: Plan, seconds: dict[str, float]) -> Run:
    from sparkserve.engine import ready

    begin = time.monotonic()
    with phase("Wait for a real answer") as detail:
        run = ready.wait(run, files, timeout_s=plan.serving.ready_timeout_s, detail=detail)
    seconds["ready"] = time.monotonic() - begin
    return run


def _space(state: Path) -> None:
    free = os.statvfs(state)
    if free.f_bavail * free.f_frsize < STATE_BYTES:
        raise SparkserveError(
            "HOST.DISK",
            expected=f"{STATE_BYTES >> 20} MiB of free space for logs and records",
            found=f"{free.f_bavail * free.f_frsize >> 20} MiB",
            where=str(state),
            do="Free some space and run the same command.",
        )
