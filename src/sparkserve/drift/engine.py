"""The engine that runs beside the command that its plan gives: arguments, environment, isolation, mounts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.drift import line
from sparkserve.drift.changes import ABSENT, changes
from sparkserve.drift.report import Difference, difference
from sparkserve.drift.words import by_flag
from sparkserve.engine import inside, procfs, runner
from sparkserve.group import launch, run_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sparkserve.drift.line import Line, Wanted
    from sparkserve.engine.closure import Closure
    from sparkserve.engine.inside import Mount
    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan

# What bubblewrap itself puts into a /dev of its own.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "pts", "console", "mqueue")


class Engine(NamedTuple):
    """An engine: its launcher, bubblewrap outside of its namespace, and the line that was to start it."""

    launcher: int
    monitor: int
    wanted: Line


def of_group(plan: Plan, closure: Closure, runs: Path) -> Engine | None:
    """The engine that the supervisor wrote down in `runs`; None when there is none."""
    launcher, number = run_files.engine(runs), run_files.boot(runs)
    if launcher is None or number is None:
        return None
    place = launch.launch(plan, port=launch.meeting_port(plan, number))
    monitor = _parent(_parent(launcher.pid))
    argv = runner.command(
        plan, closure, args=place.args, env=place.env, leashed=True, status_fd=_status(monitor)
    )
    return Engine(launcher.pid, monitor, line.parse(argv))


def of_run(plan: Plan, closure: Closure, run: Run) -> Engine | None:
    """The engine of a fleet of one node on this machine; None when it is gone."""
    if not run.alive():
        return None
    argv = runner.command(plan, closure, status_fd=_status(run.monitor.pid))
    return Engine(run.engine.pid, run.monitor.pid, line.parse(argv))


def arguments(engine: Engine) -> Iterator[Difference]:
    """Program and arguments."""
    wanted, found = list(engine.wanted.words), inside.words(engine.launcher)
    ones, others = by_flag(wanted), by_flag(found)
    for name in {**ones, **others}:
        if ones.get(name) != others.get(name):
            yield difference("arguments", name, _given(ones, name), _given(others, name))
    if ones == others and wanted != found:
        yield difference("arguments", "their order", " ".join(ones), " ".join(others))


def _given(values: Mapping[str, str], name: str) -> str | None:
    return None if name not in values else values[name] or "given"


def environment(engine: Engine) -> Iterator[Difference]:
    """The environment that it was started with; of a value in JSON only what is different in it."""
    wanted, found = engine.wanted.environment, inside.environment(engine.launcher)
    for name in sorted({*wanted, *found}):
        one, other = wanted.get(name), found.get(name)
        if one == other:
            continue
        values = _objects(one, other)
        if values is None:
            yield difference("environment", name, one, other)
            continue
        for change in changes(*values):
            what = " ".join((name, *change.path))
            yield difference("environment", what, _text(change.before), _text(change.after))


def _objects(*texts: str | None) -> list[Any] | None:
    try:
        values = [json.loads(text or "") for text in texts]
    except ValueError:
        return None
    # Two ways to write one value have no change, but are not equal.
    return values if all(isinstance(each, dict) for each in values) and values[0] != values[1] else None


def _text(value: Any) -> str | None:
    return None if value is ABSENT else json.dumps(value)


def isolation(engine: Engine) -> Iterator[Difference]:
    """How bubblewrap was called, but for what is looked at where it takes effect."""
    wanted, found = engine.wanted.isolation, line.parse(inside.words(engine.monitor)).isolation
    gone = [option for option in wanted if option not in found]
    more = [option for option in found if option not in wanted]
    if wanted != found:
        shown = (gone, more) if gone or more else (wanted, found)
        yield difference("isolation", "bubblewrap", *(" ".join(each) or None for each in shown))


def mounts(engine: Engine) -> Iterator[Difference]:
    """Every mount that the engine sees, and what each shows."""
    wanted = engine.wanted.mounts
    there: dict[str, Mount] = {}
    for mount in inside.mounts(engine.launcher):
        if mount.target in there:
            yield difference("mounts", mount.target, "one mount", f"another over it: {_told(mount)}")
        there[mount.target] = mount
    for target, want in wanted.items():
        if target not in there:
            yield difference("mounts", target, str(want), None)
        elif not _as_wanted(engine, target, want, there[target]):
            yield difference("mounts", target, str(want), _told(there[target]))
    for target, mount in there.items():
        if target not in wanted and not _of_bubblewrap(mount, wanted):
            yield difference("mounts", target, None, _told(mount))


def _as_wanted(engine: Engine, target: str, want: Wanted, mount: Mount) -> bool:
    match want.kind:
        case "--proc":
            return mount.kind == "proc"
        case "--dev" | "--tmpfs":
            return mount.kind == "tmpfs" and want.size in (None, _size(mount))
    if want.kind == "--ro-bind" and "ro" not in mount.options:
        return False
    try:
        shown = (inside.folder(engine.launcher) / "root" / target.lstrip("/")).stat()
        return os.path.samestat(shown, os.stat(want.source))  # noqa: PTH116 - as the line before
    except FileNotFoundError:
        return False


def _size(mount: Mount) -> int | None:
    """The size of a tmpfs, which the kernel tells in KiB."""
    sizes = [each[5:-1] for each in mount.settings if each.startswith("size=") and each.endswith("k")]
    return int(sizes[0]) << 10 if sizes and sizes[0].isdecimal() else None


def _of_bubblewrap(mount: Mount, wanted: Mapping[str, Wanted]) -> bool:
    """Whether it is a part of a /proc or a /dev that bubblewrap makes."""
    folder, _, name = mount.target.rpartition("/")
    if folder in wanted and wanted[folder].kind == "--dev":
        return name in _DEVICES
    # Folders of the same proc, read-only over themselves.
    return (
        mount.kind == "proc" and mount.root != "/" and "/proc" in wanted and mount.target.startswith("/proc/")
    )


def _told(mount: Mount) -> str:
    size = _size(mount)
    what = f"{mount.root} of {mount.source}" if mount.kind not in ("tmpfs", "proc") else f"a {mount.kind}"
    return what + (f" of {size >> 20} MiB" if size else "") + (", read-only" if "ro" in mount.options else "")


def _parent(pid: int) -> int:
    found = procfs.look(pid)
    if found is None:
        raise ProcessLookupError(pid)
    return found.parent


def _status(monitor: int) -> int | None:
    return line.parse(inside.words(monitor)).status
