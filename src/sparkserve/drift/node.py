"""One node beside its host closure: what is there, what differs, and what all nodes must have alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import plan as plans
from sparkserve.adapters import fingerprint, registry
from sparkserve.drift import engine as engines
from sparkserve.drift import host, libraries, root
from sparkserve.drift.report import Difference, Report, difference
from sparkserve.engine import closure as closures
from sparkserve.group import run_files
from sparkserve.group.identity import identity
from sparkserve.host import kernel, wanted
from sparkserve.host.status import generation
from sparkserve.host.system import System
from sparkserve.pins.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sparkserve.drift.engine import Engine
    from sparkserve.engine.closure import Closure
    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan


class Look:
    """A look at the node of the host closure `folder`; `note` keeps what a part of it found.

    Raises `PLAN.SCHEMA` for a folder that is none.
    """

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.folder = folder
        self.plan = plans.load(folder / "plan.json")
        self.closure = closures.load(folder)
        self.engine: Engine | None = None
        self.checked: dict[str, int] = {}
        self.differences: list[Difference] = []
        self.compiled: tuple[str, ...] = ()

    def note(self, part: str, count: int, found: Iterator[Difference] | Sequence[Difference]) -> None:
        """Keep the differences `found`, and that `count` things of `part` were looked at."""
        self.checked[part] = self.checked.get(part, 0) + count
        self.differences += found

    def report(self, generation: int | None = None) -> Report:
        """What was found. `generation` is the number that the closure has on the node."""
        return Report(
            schema="sparkserve.drift/1",
            node=self.plan.node.name,
            closure=str(self.folder),
            generation=generation,
            fleet_id=self.closure.fleet_id,
            engine=self.engine.launcher if self.engine else None,
            checked=self.checked,
            differences=tuple(self.differences),
            facts=_facts(self.system, self.plan, self.closure),
            compiled=self.compiled,
        )


def of_group(system: System, folder: Path, *, live: bool, deep: bool) -> Report:
    """A node of a group, whose host closure is `folder`; `live` with its engine, `deep` with all bytes.

    Changes nothing. Raises `PLAN.SCHEMA`, and `NODE.ACTIVATE` when systemd does not answer.
    """
    found = Look(system, folder)
    plan = found.plan
    _bytes(found, deep=deep)
    found.note("closure", 1, host.activation(system, folder))
    found.note("files", len(wanted.wanted(folder, plan.host)), host.files(system, folder, plan))
    found.note("units", len(plan.host.units) + len(plan.host.mask), host.drop_ins(system, plan))
    found.note("sysctls", len(plan.host.sysctls), host.policy(system, folder, plan))
    found.note("links", len(plan.fabric.links) if plan.fabric else 0, host.rdma(system, plan))
    if live:
        _running(found, lambda: engines.of_group(plan, found.closure, system.runs))
        found.note("adapters", len(plan.adapters), _adapters(plan, system.runs))
    return found.report(generation(system))


def of_run(run: Run, *, live: bool, deep: bool) -> Report:
    """The node of a fleet of one, without an operating system of its own: `run` is its engine here.

    Raises `PLAN.SCHEMA` when its closure is of another version.
    """
    found = Look(System(), Path(run.closure))
    _bytes(found, deep=deep)
    if live:
        _running(found, lambda: engines.of_run(found.plan, found.closure, run))
    return found.report()


def _bytes(found: Look, *, deep: bool) -> None:
    paths = root.paths(found.system, found.folder, found.closure)
    found.note("root", len(paths), root.recorded(found.system, paths))
    if deep:
        found.note("root", 0, root.read(found.system, paths))


def _running(found: Look, find: Callable[[], Engine | None]) -> None:
    try:
        engine = found.engine = find()
        if engine is None:
            found.note("engine", 1, [difference("engine", "it", "running", None)])
            return
        line = engine.wanted
        found.note("arguments", len(line.words), engines.arguments(engine))
        found.note("environment", len(line.environment), engines.environment(engine))
        found.note("isolation", len(line.isolation), engines.isolation(engine))
        found.note("mounts", len(line.mounts), engines.mounts(engine))
        loaded = libraries.loaded(engine)
        found.note("libraries", loaded.looked_at, loaded.differences)
        found.compiled = loaded.compiled
    except (FileNotFoundError, ProcessLookupError):
        found.note("engine", 1, [difference("engine", "it", "running", "it ended meanwhile")])


def _adapters(plan: Plan, runs: Path) -> Iterator[Difference]:
    """What the ranks agreed on when they armed, against what the plan and the recorded sources give."""
    known, sources = registry.declarations(), fingerprint.recorded()
    mine = {}
    for adapter in plan.adapters:
        declared = known[adapter.name]
        found = {target: sources[target] for target in declared.hooks.values()}
        mine[adapter.name] = {
            "settings": declared.complete(adapter.settings),
            "fingerprint": fingerprint.digest(found),
        }
    armed = run_files.armed(runs)
    for name in sorted({*mine, *armed}):
        want = fingerprint.digest(mine) if name in mine else None
        if armed.get(name) != want:
            yield difference("adapters", name, want, armed.get(name, "not armed"))


def _facts(system: System, plan: Plan, closure: Closure) -> dict[str, str]:
    """What must be the same on all nodes and is not in every plan: bytes, kernel, driver, boot."""
    facts = {name: str(value) for name, value in identity(plan, closure).items()}
    facts["kernel"] = kernel.release(system)
    facts["page size"] = str(os.sysconf("SC_PAGE_SIZE"))
    facts["NVIDIA driver"] = kernel.driver(system) or "none"
    if (boot := run_files.boot(system.runs)) is not None:
        facts["boot of the group"] = str(boot)
    for path in plan.engine.binds:
        file = system.at(path)
        facts[f"bytes of {path}"] = f"sha256:{file_sha256(file)}" if file.is_file() else "not there"
    return facts
