"""What people write: `nix/profiles/<name>.toml`, one per set of pins."""

from __future__ import annotations

import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, NoReturn

from pydantic import Field, ValidationError, WrapValidator, model_validator

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.pins import model
from sparkserve.pins.model import Frozen, Target

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic import ValidatorFunctionWrapHandler


def _in_words(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError("neither a list of names nor a table of names and reasons") from error


# Names alone, or a table that has the reason for each. Either is iterated by name.
Names = Annotated[tuple[str, ...] | dict[str, Annotated[str, Field(min_length=1)]], WrapValidator(_in_words)]


class Debs(Frozen):
    """`request`: package names. `exclude`: needs of theirs that are cut with their own."""

    request: Names = ()
    exclude: Names = ()


class Wheels(Frozen):
    """`request`: requirements. `no_deps`: exact versions, taken alone. `exclude`: cut with their needs."""

    request: Names = ()
    no_deps: Names = ()
    exclude: Names = ()


class Tree(Frozen):
    """A folder `name` with the executable `name` in it, which is `member` of the deb `deb`."""

    name: str
    deb: str
    member: str


class Profile(Frozen):
    """One profile. It holds only what the profiles in `above` lack, at the versions that those hold.

    One that is `on_request` is large, and only a command that names it takes it.
    """

    target: Target
    on_request: bool = False
    above: tuple[str, ...] = ()
    debs: Debs = Debs()
    wheels: Wheels = Wheels()
    tree: tuple[Tree, ...] = ()

    @model_validator(mode="after")
    def _request_or_exclude(self) -> Profile:
        for part in (self.debs, self.wheels):
            # A requirement starts with its name.
            wanted = {re.split(r"[^\w.-]", text)[0] for text in part.request}
            if both := wanted & set(part.exclude):
                raise ValueError(f"requested and excluded at once: {', '.join(sorted(both))}")
        return self


def folder() -> Path:
    """Where the profiles are."""
    return checkout.root() / "nix" / "profiles"


def names() -> list[str]:
    """All profiles, sorted."""
    return sorted(p.stem for p in folder().glob("*.toml"))


def usual() -> list[str]:
    """The profiles that a command without names takes, sorted: of all that have or should have a pin list."""
    return [name for name in model.known() if name not in names() or not load(name).on_request]


def load(name: str) -> Profile:
    """Read a profile. Raises `PIN.PROFILE` with the key that is wrong."""
    path = folder() / f"{name}.toml"
    try:
        profile = Profile.model_validate(tomllib.loads(path.read_text()))
    except FileNotFoundError:
        _refuse(name, f"no profile {name!r}", f"Profiles are: {', '.join(names())}.")
    except tomllib.TOMLDecodeError as error:
        _refuse(name, f"TOML that does not parse: {error}", "Correct that line.")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        _refuse(name, f"{key}: {first['msg']}", "Correct that key.")
    for wheel in profile.wheels.no_deps:
        if not re.fullmatch(r"[\w.-]+==[\w.!+]+", wheel):
            _refuse(name, f"no_deps {wheel!r}", "Write NAME==VERSION: no resolver looks at it.")
    return profile


def in_order(wanted: Iterable[str]) -> list[str]:
    """`wanted` with every profile after those it is above. Raises `PIN.PROFILE` on a circle."""
    chosen = list(wanted)
    for name in chosen:
        load(name)
    try:
        order = TopologicalSorter({name: load(name).above for name in names()}).static_order()
        return [name for name in order if name in chosen]
    except CycleError as error:
        _refuse(chosen[0], f"a circle: {' above '.join(error.args[1])}", "Remove one `above`.")


def _refuse(name: str, found: str, do: str) -> NoReturn:
    raise SparkserveError(
        "PIN.PROFILE",
        expected="a profile with target, above, debs, wheels and tree",
        found=found,
        where=f"nix/profiles/{name}.toml",
        do=do,
    )
