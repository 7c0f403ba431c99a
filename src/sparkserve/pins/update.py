"""`pins update`: locks the profiles that have some packages anew, and says what moved with them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.adapters import fingerprint, registry
from sparkserve.errors import SparkserveError
from sparkserve.pins import model, profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.pins.lock import Move
    from sparkserve.pins.model import Pin


class Target(NamedTuple):
    """A place in a moved wheel that adapters are put around, and what became of the module that has it."""

    name: str
    users: list[str]
    module: str


def known() -> list[str]:
    """The names of all packages in the pin lists, sorted."""
    return sorted({pin.name for name in model.known() for pin in model.load(name).pins})


def having(packages: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those of the profiles `names` whose lists have one of `packages`; all of them, without any."""
    return [
        name for name in names if not packages or {*packages} & {pin.name for pin in model.load(name).pins}
    ]


def profiles(packages: Sequence[str]) -> list[str]:
    """The profiles to lock anew for `packages`: those that have one, but not those on request.

    Raises `PIN.PROFILE` for a package that none of them has.
    """
    usual = profile.usual()
    for package in packages:
        if not having([package], usual):
            held = having([package], model.known())
            raise SparkserveError(
                "PIN.PROFILE",
                expected="a package of a pin list",
                found=f"{package}, which {held[0]} has, on request," if held else package,
                where="nix/pins",
                do=f"Run: ./sparkserve pins lock {held[0]}" if held else "See: ./sparkserve pins list",
            )
    return having(packages, usual)


def requires(move: Move) -> tuple[list[str], list[str]]:
    """The requirements that a pin has now and had not, and those that it had."""
    old, new = ({*pin.requires} if pin else set() for pin in move)
    return sorted(new - old), sorted(old - new)


def targets(move: Move) -> list[Target]:
    """The places that adapters rely on in a wheel that moved.

    A module with the bytes of before has not moved. Where the store has no wheel of before, all may have.
    """
    if move.new is None or move.new.kind != "wheel":
        return []
    wanted = fingerprint.targets(registry.declarations())
    before, after = _members(move.old, wanted), _members(move.new, wanted)
    found = []
    for name, users in sorted(wanted.items()):
        old, new = before.get(name), after.get(name)
        if old is None and new is None:
            continue
        state = "gone" if new is None else "same" if new == old else "changed" if old else "not compared"
        found.append(Target(name, users, state))
    return found


def _members(pin: Pin | None, wanted: Mapping[str, object]) -> dict[str, int]:
    """The checksum of the module that has each target, of those that are in the wheel of `pin`."""
    if pin is None or pin.kind != "wheel" or not Path(pin.path).is_file():
        return {}
    with zipfile.ZipFile(pin.path) as archive:
        sums = {info.filename: info.CRC for info in archive.infolist()}
    found = {}
    for name in wanted:
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            base = "/".join(parts[:length])
            file = next((each for each in (f"{base}.py", f"{base}/__init__.py") if each in sums), None)
            if file is not None:
                found[name] = sums[file]
                break
    return found
