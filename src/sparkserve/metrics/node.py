"""What a node knows of itself, as samples, from files that everybody may read.

What a file does not say, because it is missing, torn or old, is left out: an absent value raises the alert
that watches for it, and a wrong one hides what is wrong.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from sparkserve.commands import PROFILE
from sparkserve.front.state import FrontState, Group, Probe, State, Verdict
from sparkserve.gates.subject import digest
from sparkserve.group import links, phases, run_files
from sparkserve.group.memory import Memory
from sparkserve.group.report import FRESH_S
from sparkserve.guard import state as guards
from sparkserve.metrics.families import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.engine.closure import Closure
    from sparkserve.plan import Plan

_Kind = TypeVar("_Kind", bound=BaseModel)
_MIB = 1 << 20
_RESULTS = get_args(Probe.model_fields["result"].annotation)
# What group.json says of a boot that is under way (src/sparkserve/group/controller.py).
_PHASES = ("preflight", *phases.NAMES, "first token")


@dataclass(frozen=True)
class Places:
    """Where a node's files are."""

    run: Path = run_files.RUN
    state: Path = run_files.STATE
    meminfo: Path = Path("/proc/meminfo")
    net: Path = links.NET
    profile: Path = Path(PROFILE)


def samples(plan: Plan, closure: Closure, path: Path, places: Places) -> Iterator[Sample]:
    """Everything but the GPU's of the node that runs the host closure `path`, whose two files are given."""
    yield from _identity(plan, closure, path, places)
    yield from _rank(places)
    yield from _memory(places)
    yield from _guard(places)
    yield from _links(plan, places)
    if plan.group is not None and plan.node.rank == 0:
        yield Sample("sparkserve_lost_seconds", plan.group.lost_s)
        yield from _group(places)
        yield from _front(places)


def _identity(plan: Plan, closure: Closure, path: Path, places: Places) -> Iterator[Sample]:
    size = str(len(plan.fleet.nodes))
    said = (closure.fleet_id, digest(plan), str(path), plan.serving.model, str(plan.node.rank), size)
    yield Sample("sparkserve_info", 1, said)
    try:
        found = re.search(r"-(\d+)-link$", os.readlink(places.profile))  # noqa: PTH115 - as it stands there
        since = os.lstat(places.profile).st_mtime
    except OSError:
        return
    if found is not None:
        yield Sample("sparkserve_generation", int(found[1]))
        yield Sample("sparkserve_generation_timestamp_seconds", since)


def _rank(places: Places) -> Iterator[Sample]:
    file = places.run / run_files.RANK.name
    boot = run_files.boot(file)
    if boot is None:
        # No supervisor, or one that has not been told to start anything: so no engine either.
        yield from [] if file.exists() else [Sample("sparkserve_rank_up", 0)]
        return
    runs = run_files.engine(file) is not None
    yield Sample("sparkserve_rank_up", runs)
    yield Sample("sparkserve_rank_boot", boot)
    if runs:
        for adapter, agreed in sorted(run_files.armed(file).items()):
            yield Sample("sparkserve_adapter_info", 1, (adapter, agreed))


def _memory(places: Places) -> Iterator[Sample]:
    names = {"MemAvailable": "available", "MemTotal": "total"}
    for line in _text(places.meminfo).splitlines():
        name, _, rest = line.partition(":")
        if name in names and rest.split()[:1] and rest.split()[0].isdigit():
            yield Sample(f"sparkserve_memory_{names[name]}_bytes", int(rest.split()[0]) * 1024)


def _guard(places: Places) -> Iterator[Sample]:
    found = guards.look(places.run / guards.FILE.name)
    # Two numbers that differ: it died in the middle of a write, or writes faster than we read.
    fresh = found is not None and found.age_s <= guards.FRESH_S and found.seq == found.end
    yield Sample("sparkserve_guard_up", fresh)
    if found is None or not fresh:
        return
    for phase in get_args(guards.Phase):
        yield Sample("sparkserve_guard_phase", phase == found.phase, (phase,))
    yield Sample("sparkserve_guard_floor_bytes", found.floor_mib * _MIB)
    yield Sample("sparkserve_guard_line_bytes", found.line_mib * _MIB)
    yield Sample("sparkserve_guard_kills_total", found.kills)
    yield Sample("sparkserve_guard_lacks", len(found.lacks))
    for name, kib in (("", found.low_water_kib), ("engine_", found.low_water_engine_kib)):
        if kib is not None:
            yield Sample(f"sparkserve_guard_{name}low_water_bytes", kib * 1024)
    if found.kill is not None:
        yield Sample("sparkserve_guard_last_kill_timestamp_seconds", found.kill.unix_ms / 1000)


def _links(plan: Plan, places: Places) -> Iterator[Sample]:
    if plan.fabric is None or not places.net.is_dir():
        return
    for link in plan.fabric.links:
        labels = (link.interface, str(link.rail), str(link.stripe))
        yield Sample("sparkserve_link_carrier", links.carrier(link.interface, places.net), labels)


def _group(places: Places) -> Iterator[Sample]:
    group = _record(places.run / "group.json", Group)
    if group is not None:
        for state in get_args(State):
            yield Sample("sparkserve_group_state", state == group.state, (state,))
        phase = group.reason if group.state == "starting" and group.reason in _PHASES else ""
        yield Sample("sparkserve_group_info", 1, (group.boot, phase))
        if group.since:
            yield Sample("sparkserve_group_since_timestamp_seconds", group.since)
    memory = _record(places.state / "group.json", Memory)
    if memory is not None:
        yield Sample("sparkserve_group_wanted", memory.wanted)
        yield Sample("sparkserve_group_boots_total", memory.number)


def _front(places: Places) -> Iterator[Sample]:
    front = _record(places.run / "front.json", FrontState)
    # Also not one of later: then the clock was set, and no age that follows from it is true.
    age = None if front is None else time.time() - front.written_at
    fresh = age is not None and abs(age) < FRESH_S
    yield Sample("sparkserve_front_up", fresh)
    if front is None or age is None or not fresh:
        return
    for verdict in get_args(Verdict):
        yield Sample("sparkserve_front_verdict", verdict == front.verdict, (verdict,))
    if front.last_token_age_s is not None:
        yield Sample("sparkserve_token_age_seconds", front.last_token_age_s + max(0.0, age))
    for result in _RESULTS:
        yield Sample("sparkserve_canary_result", result == front.canary.result, (result,))
    if front.canary.age_s is not None:
        yield Sample("sparkserve_canary_age_seconds", front.canary.age_s + max(0.0, age))
        yield Sample("sparkserve_canary_duration_seconds", front.canary.seconds)
    yield Sample("sparkserve_requests_in_flight", front.in_flight)
    for end, count in sorted(front.requests.items()):
        yield Sample("sparkserve_requests_total", count, (end,))


def _record(file: Path, kind: type[_Kind]) -> _Kind | None:
    """What a file of one of our writers says; None when it cannot be understood."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
