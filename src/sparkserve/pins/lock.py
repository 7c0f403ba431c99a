"""`pins lock`: resolves profiles into pin lists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.pins import apt, model, pip, profile, resolver, store, tree, wheels, workspace
from sparkserve.pins.model import Pin, PinList
from sparkserve.terminal import phase

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Collection, Iterable, Sequence

    from sparkserve.pins.profile import Profile

_WHEELS_PER_PIP = 16


class Move(NamedTuple):
    """A pin before and after a lock; None where there is none."""

    old: Pin | None
    new: Pin | None

    @property
    def line(self) -> str:
        """A line that names kind, name and versions."""
        old, new = self
        if new is None:
            return f"- {old.kind} {old.name} {old.version}" if old else ""
        if old is None:
            return f"+ {new.kind} {new.name} {new.version}"
        if old.version == new.version:
            return f"~ {new.kind} {new.name} {new.version}: other content"
        return f"~ {new.kind} {new.name} {old.version} -> {new.version}"


@dataclass(frozen=True)
class Change:
    """How a new list differs from the one before it."""

    profile: str
    moves: list[Move]

    @property
    def lines(self) -> list[str]:
        """One for each move."""
        return [move.line for move in self.moves]


def lock(
    names: Sequence[str],
    given: Sequence[str],
    mirror: str | None,
    *,
    dry_run: bool,
    today: datetime.date,
    only: Collection[str] = (),
) -> list[Change]:
    """Resolve profiles and write their pin lists; return what changed. With `dry_run` no list is written.

    With `only`, names of packages, other wheels stay at their versions unless these need them to move. A
    suite of Debian has one version of each package, so debs are what it has now in either case.

    New wheels are downloaded in either case, for their hashes, and go into the store at once; those of debs
    are in the signed package index.
    Raises `PIN.RESOLVE`, `PIN.FETCH`, `PIN.PROFILE`.
    """
    changes = []
    made: dict[str, PinList] = {}
    with workspace.locked():
        for name in profile.in_order(names):
            with phase(f"Lock {name}") as detail:
                pins = _Lock(name, made, given, mirror, detail, only).resolve(today)
                changes.append(Change(name, _moves(_listed(name), pins.pins)))
                if not dry_run:
                    model.save(pins)
                made[name] = pins
    return changes


class _Lock:
    def __init__(
        self,
        name: str,
        made: dict[str, PinList],
        given: Sequence[str],
        mirror: str | None,
        detail: Callable[[str], None],
        only: Collection[str],
    ):
        self.name, self.profile = name, profile.load(name)
        self.given, self.mirror, self.detail = given, mirror, detail
        self.only = only
        self.under: dict[str, Profile] = {}
        self._collect(self.profile)
        lists = [made[below] if below in made else model.load(below) for below in self.under]
        if any(each.target != self.profile.target for each in lists):
            raise SparkserveError(
                "PIN.PROFILE",
                expected=f"one target in {name} and {', '.join(self.under)}",
                found="different ones",
                where=f"nix/profiles/{name}.toml",
                do="Make [target] equal, and lock the lower profiles first.",
            )
        self.below = [pin for each in lists for pin in each.pins]

    def _collect(self, upper: Profile) -> None:
        for below in upper.above:
            self.under[below] = profile.load(below)
            self._collect(self.under[below])

    def resolve(self, today: datetime.date) -> PinList:
        debs = self._debs()
        pins = [*debs, *(self._tree(each, debs) for each in self.profile.tree), *self._wheels()]
        return PinList(
            profile=self.name,
            locked=today.isoformat(),
            target=self.profile.target,
            pins=tuple(sorted(pins, key=lambda pin: (pin.kind, pin.name))),
        )

    def _debs(self) -> list[Pin]:
        if not self.profile.debs.request:
            return []
        self.detail("asking apt")
        below = {pin.name: pin for pin in self.below if pin.kind == "deb"}
        forced = [f"{pin.name}={pin.version}" for pin in below.values()]
        requests = [name for name in self.profile.debs.request if name not in below]
        cut_below = {name for each in self.under.values() for name in each.debs.exclude}
        # A profile may ask for what one below goes without.
        without = sorted({*self.profile.debs.exclude} | cut_below - {*self.profile.debs.request})
        found = apt.opened(self.profile.target, self.mirror).resolve([*forced, *requests], without)
        return [pin for pin in found if pin.name not in below]

    def _tree(self, wanted: profile.Tree, debs: Iterable[Pin]) -> Pin:
        deb = next((pin for pin in debs if pin.name == wanted.deb), None)
        if deb is None:
            raise self._wrong(f"tree {wanted.name} from {wanted.deb}, which is not among its debs")
        if store.missing([deb.path]):
            root = apt.opened(self.profile.target, self.mirror)
            with workspace.scratch() as folder:
                workspace.into_store({deb: root.download([deb], folder)[0]})
        with tree.unpacked(Path(deb.path), wanted.member, wanted.name) as made:
            size = (made / wanted.name).stat().st_size
            return Pin(
                kind="tree",
                name=wanted.name,
                version=deb.version,
                file=wanted.name,
                sha256=store.tree_sha256(made),
                size=size,
                source=deb.file,
                member=wanted.member,
            )

    def _wheels(self) -> list[Pin]:
        wanted = self.profile.wheels
        if not wanted.request and not wanted.no_deps:
            return []
        self.detail("asking uv")
        where = pip.places(self.given)
        below = {pin.name: pin for pin in self.below if pin.kind == "wheel"}
        cut_below = [name for each in self.under.values() for name in each.wheels.exclude]
        exact = resolver.resolve(
            self.profile.target,
            wanted.request,
            constraints=[*(f"{pin.name}=={pin.version}" for pin in below.values()), *wanted.no_deps],
            excludes=[*wanted.exclude, *cut_below],
            preferred=[f"{pin.name}=={pin.version}" for pin in self._held()],
            where=where,
        )
        pairs = (text.split("==") for text in [*exact, *wanted.no_deps])
        versions = {model.normal(name): version for name, version in pairs}
        new = {name: version for name, version in versions.items() if name not in below}
        pins = _recorded(self.profile.target, new)
        left = [f"{name}=={version}" for name, version in sorted(new.items()) if name not in pins]
        for start in range(0, len(left), _WHEELS_PER_PIP):
            self.detail(f"downloading wheels, {len(left) - start} to go")
            with workspace.scratch() as base:
                files = pip.download(self.profile.target, left[start : start + _WHEELS_PER_PIP], base, where)
                got = {wheels.read(file): file for file in files}
                workspace.into_store(got)
            # The resolver's spelling of the version is the one that finds the file again.
            pins |= {pin.name: pin.model_copy(update={"version": new[pin.name]}) for pin in got}
        return list(pins.values())

    def _held(self) -> list[Pin]:
        listed = _listed(self.name) if self.only else ()
        return [pin for pin in listed if pin.kind == "wheel" and pin.name not in self.only]

    def _wrong(self, found: str) -> SparkserveError:
        return SparkserveError(
            "PIN.PROFILE",
            expected="a profile that fits what it resolves to",
            found=found,
            where=f"nix/profiles/{self.name}.toml",
            do="Correct that entry.",
        )


def _recorded(target: model.Target, versions: dict[str, str]) -> dict[str, Pin]:
    """Records for these wheels from the lists that are there, if the store has their bytes: a hash is never
    taken over unproved, and nothing is downloaded twice."""
    wheels_listed = [pin for name in model.known() for pin in _listed(name, target) if pin.kind == "wheel"]
    known = {pin.name: pin for pin in wheels_listed if versions.get(pin.name) == pin.version}
    absent = store.missing(pin.path for pin in known.values())
    return {name: pin for name, pin in known.items() if pin.path not in absent}


def _listed(name: str, target: model.Target | None = None) -> tuple[Pin, ...]:
    """The pins of a list (if it is for `target`); none when it cannot be read, for a new lock is the cure."""
    try:
        pins = model.load(name)
    except SparkserveError:
        return ()
    return pins.pins if target in (None, pins.target) else ()


def _moves(before: Iterable[Pin], after: Iterable[Pin]) -> list[Move]:
    old = {(pin.kind, pin.name): pin for pin in before}
    new = {(pin.kind, pin.name): pin for pin in after}
    pairs = (Move(old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys()))
    return [pair for pair in pairs if pair.old != pair.new]
