"""A node's change from what is in effect to what a closure wants, or to what was there before all closures.

It only goes forward: whatever ended it, the next run compares again what is there with what is wanted, and
does the rest. For that, nothing is changed before the record says what was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sparkserve.host import effects, kernel
from sparkserve.host import record as records
from sparkserve.host.record import Entry, Pending
from sparkserve.host.system import wrong
from sparkserve.host.there import look, part, put
from sparkserve.host.wanted import UNITS, Wanted, wanted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sparkserve.host.record import Record
    from sparkserve.host.system import System
    from sparkserve.host.there import There
    from sparkserve.plan import Plan


class Change(NamedTuple):
    """What is to be done. `closure` None: back to what was there before.

    `todo` are the paths to change, `now` what is at every path that matters, `foreign` those edited by hand.
    `sysctls` have the values to write.
    """

    closure: Path | None
    plan: Plan | None
    record: Record
    wanted: Mapping[str, Wanted]
    now: Mapping[str, There | None]
    todo: tuple[str, ...]
    foreign: tuple[str, ...]
    sysctls: Mapping[str, str]

    @property
    def nothing(self) -> bool:
        """Whether the node is so already."""
        same = self.record.closure == (str(self.closure) if self.closure else None)
        return same and not (self.todo or self.sysctls or self.record.pending)

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths that their readers must hear of, also those of a change that was interrupted."""
        before = self.record.pending.changed if self.record.pending else ()
        return tuple(sorted({*before, *self.todo}))

    @property
    def written(self) -> list[str]:
        """Those of `changed` that are there afterwards as the closure wants them."""
        return [path for path in self.changed if path in self.wanted]

    def target(self, path: str) -> There | None:
        """What is to be at `path`."""
        if path in self.wanted:
            return self.wanted[path].there
        return self.record.entries[path].was

    @property
    def masks(self) -> list[str]:
        """Units that are masked in this change."""
        return [name for name in (self.plan.host.mask if self.plan else ()) if f"{UNITS}/{name}" in self.todo]

    @property
    def dropped(self) -> list[str]:
        """Units of ours that are no more."""
        links = [path for path in self.todo if path not in self.wanted and path.startswith(f"{UNITS}/")]
        return [
            path.removeprefix(f"{UNITS}/")
            for path in links
            if path.count("/") == UNITS.count("/") + 1
            and (now := self.now[path]) is not None
            and "/units/" in now.value
        ]


def plan_change(system: System, closure: Path | None, plan: Plan | None) -> Change:
    """Compare the node with what `closure` wants, whose plan is `plan`; None for what was there before."""
    record = records.load(system)
    want = wanted(closure, plan.host) if closure and plan else {}
    now = {path: look(system.at(path)) for path in sorted({*want, *record.entries})}
    targets = {path: want[path].there if path in want else record.entries[path].was for path in now}
    todo = [
        path
        for path, there in now.items()
        if not (there is targets[path] or (there and there.same(targets[path])))
    ]
    foreign = [path for path in todo if path in record.entries and not record.entries[path].known(now[path])]
    values = dict(plan.host.sysctls) if plan else {}
    # What a closure no longer sets goes back to what it was.
    values |= {name: value for name, value in record.sysctls.items() if name not in values}
    # What this kernel does not have cannot be set; verification names it.
    sysctls = {
        name: value
        for name, value in values.items()
        if (found := kernel.read(system, name)) is not None and found != kernel.plain(value)
    }
    return Change(closure, plan, record, want, now, tuple(todo), tuple(foreign), sysctls)


def carry_out(system: System, change: Change) -> None:
    """Do it. Raises `NODE.ACTIVATE` for what a program refuses; then it is to be run again, or undone."""
    record = _begin(system, change)
    if stops := [*effects.running(system, change.masks), *effects.running(system, change.dropped)]:
        effects.change(system, "systemctl", "stop", *stops)
    for path in change.todo:
        system.step(f"put {path}")
        _put(system, change, path)
    for folder in sorted(record.folders, key=len, reverse=True):
        if not any(path.startswith(f"{folder}/") for path in change.wanted):
            _remove_empty(system.at(folder))
    _tell(system, change)
    for name, value in change.sysctls.items():
        system.step(f"set {name}")
        kernel.write(system, name, value)
    _restart(system, change, record)
    _end(system, change, record)


def _begin(system: System, change: Change) -> Record:
    """Keep what is there, and write down what is going to happen."""
    entries = dict(change.record.entries)
    for path in (*change.wanted, *change.foreign):
        now = change.now[path]
        if path in change.foreign and now is not None:
            system.step(f"keep {path}")
            records.keep_aside(system, path, now)
        if path not in entries:
            was = None if now is None or _of_ours(now) else now
            if was is not None:
                system.step(f"back up {path}")
                records.back_up(system, system.at(path), was)
            entries[path] = Entry(was=was, ours=())
        if path in change.wanted:
            there = change.wanted[path].there
            ours = tuple(each for each in entries[path].ours if not each.same(there))
            entries[path] = Entry(was=entries[path].was, ours=(*ours, there))
    for path in entries:
        part(system.at(path)).unlink(missing_ok=True)
    found = {name: kernel.read(system, name) for name in (change.plan.host.sysctls if change.plan else ())}
    before = {name: value for name, value in found.items() if value is not None}
    record = change.record.model_copy(
        update={
            "node": change.plan.node.name if change.plan else change.record.node,
            "entries": entries,
            "folders": tuple(sorted({*change.record.folders, *_new_folders(system, change)})),
            "sysctls": {**before, **change.record.sysctls},
            "stopped": tuple(sorted({*change.record.stopped, *effects.running(system, change.masks)})),
            "pending": Pending(
                closure=str(change.closure) if change.closure else None, changed=change.changed
            ),
        }
    )
    system.step("write down what is to be done")
    records.save(system, record)
    return record


def _of_ours(now: There) -> bool:
    """A link into the store is of an activation whose record is lost: nobody else makes such links."""
    return now.kind == "link" and now.value.startswith("/nix/store/") and "/units/" in now.value


def _new_folders(system: System, change: Change) -> Iterator[str]:
    for path in change.wanted:
        folder = path.rpartition("/")[0]
        while folder and not system.at(folder).exists():
            yield folder
            folder = folder.rpartition("/")[0]


def _put(system: System, change: Change, path: str) -> None:
    target = change.target(path)
    data = change.wanted[path].data if path in change.wanted else b""
    if path not in change.wanted and target is not None and target.kind == "file":
        data = records.backup(system, target.value).read_bytes()
    put(system.at(path), target, data)


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _tell(system: System, change: Change) -> None:
    """Tell everyone whose files changed. What they refuse is put back as it was before all of ours."""
    for reader in effects.readers(system, change.changed):
        reason = effects.refused(system, reader)
        if reason is not None:
            for path in change.written:
                if path.startswith(reader.prefix):
                    was = (
                        change.record.entries[path].was if path in change.record.entries else change.now[path]
                    )
                    data = (
                        records.backup(system, was.value).read_bytes() if was and was.kind == "file" else b""
                    )
                    put(system.at(path), was, data)
            raise wrong(
                f"files that {reader.check[0]} takes",
                reason,
                f"{reader.prefix} of {system.name}",
                "They are as before again. Change the options that they come from.",
            )
        for command in reader.commands(change.written):
            effects.change(system, *command)


def _restart(system: System, change: Change, record: Record) -> None:
    """Restart what changed of policy, and a front that runs; start again what ran before it was masked."""
    names = effects.units(change.changed, change.plan.host.units if change.plan else ())
    wanted = [name for name in names if any(_starts(path, name) for path in change.wanted)]
    at_boot = [name for name in wanted if name != effects.FRONT]
    others = effects.running(system, [each for each in names if each not in at_boot])
    if at_boot or others:
        effects.change(system, "systemctl", "restart", *sorted([*at_boot, *others]))  # at once
    masked = change.plan.host.mask if change.plan else ()
    if back := [name for name in record.stopped if name not in masked]:
        effects.change(system, "systemctl", "start", *back)


def _starts(path: str, name: str) -> bool:
    return path.endswith((f".target.wants/{name}", f".target.requires/{name}"))


def _end(system: System, change: Change, record: Record) -> None:
    """Forget what is no more."""
    masked = change.plan.host.mask if change.plan else ()
    entries = {
        path: Entry(was=entry.was, ours=(change.wanted[path].there,))
        for path, entry in record.entries.items()
        if path in change.wanted
    }
    sysctls = change.plan.host.sysctls if change.plan else {}
    done = record.model_copy(
        update={
            "node": record.node if change.closure else None,
            "closure": str(change.closure) if change.closure else None,
            "entries": entries,
            "folders": tuple(folder for folder in record.folders if system.at(folder).exists()),
            "sysctls": {name: value for name, value in record.sysctls.items() if name in sysctls},
            "stopped": tuple(name for name in record.stopped if name in masked),
            "pending": None,
        }
    )
    system.step("write down what is done")
    records.save(system, done)
    records.clean(system, done)
