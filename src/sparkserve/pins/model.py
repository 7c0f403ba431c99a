"""The pin lists in `nix/pins/*.json`: their types, and the one place that reads and writes them."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.pins import store

if TYPE_CHECKING:
    from pathlib import Path


class Frozen(BaseModel):
    """Unknown keys are refused, and nothing changes after it is read."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Target(Frozen):
    """The machine that the pinned bytes run on; never this machine."""

    system: Literal["aarch64-linux", "x86_64-linux"]
    debian: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    python: str = Field(pattern=r"^3\.\d+$")
    glibc: str = Field(pattern=r"^2\.\d+$")

    @property
    def machine(self) -> str:
        """The processor, as wheels and the kernel call it."""
        return self.system.partition("-")[0]

    @property
    def debian_machine(self) -> str:
        """The processor, as Debian calls it."""
        return {"aarch64": "arm64", "x86_64": "amd64"}[self.machine]


class Pin(Frozen):
    """One file or tree with its hash.

    `sha256` is hex: of the file, or for a tree of its NAR. `size` is in bytes. `file` is the store name.
    `source` and `member` say for a tree from which deb's file it is made.
    """

    kind: Literal["deb", "tree", "wheel"]
    name: str
    version: str
    file: str = Field(pattern=r"^[A-Za-z0-9+_?=-][A-Za-z0-9+._?=-]{0,206}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)
    requires: tuple[str, ...] = ()
    source: str | None = Field(default=None, validation_alias="from", serialization_alias="from")
    member: str | None = None

    @property
    def path(self) -> str:
        """The store path that this pin has or will have."""
        return store.fixed_path(self.file, self.sha256, recursive=self.kind == "tree")


class PinList(Frozen):
    """The content of one `nix/pins/<profile>.json`."""

    schema_: Literal["sparkserve.pins/1"] = Field(default="sparkserve.pins/1", alias="schema")
    profile: str
    locked: str
    target: Target
    pins: tuple[Pin, ...]

    @model_validator(mode="after")
    def _trees_have_their_deb(self) -> PinList:
        debs = {pin.file for pin in self.pins if pin.kind == "deb"}
        for pin in self.pins:
            if pin.kind == "tree" and (pin.source not in debs or pin.member is None):
                raise ValueError(f"the tree {pin.name} without a deb of this list and a member")
        return self

    @model_validator(mode="after")
    def _files_have_their_names(self) -> PinList:
        for pin in self.pins:
            if not _is_named_after(pin):
                raise ValueError(f"{pin.name} {pin.version} with {pin.file}, the file of something else,")
        return self


def _is_named_after(pin: Pin) -> bool:
    if pin.kind == "tree":
        return pin.file == pin.name
    if pin.kind == "deb":
        return pin.file.startswith(clean_name(f"{pin.name}_{pin.version.replace(':', '%3a')}_"))
    name, *rest = pin.file.split("-")
    version = clean_name(pin.version)
    in_file = "-".join(rest[: version.count("-") + 1])
    return normal(name) == normal(pin.name) and _parts(in_file) == _parts(version)


def _parts(version: str) -> list[str]:
    """What counts in a version: a file may have 2025.07 or 1.0.0 where the resolver says 2025.7 or 1.0."""
    parts = [part.lstrip("0") for part in re.findall(r"\d+|[a-z]+", version.lower())]
    while parts and not parts[-1]:
        parts.pop()
    return parts


def normal(name: str) -> str:
    """The one spelling of a distribution's name that indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def clean_name(file: str) -> str:
    """Map a file name to what Nix allows: Debian's `%3a` and `~`, and all else not allowed, become `-`."""
    return re.sub(r"[^A-Za-z0-9+._?=-]", "-", file.replace("%3a", "-")).lstrip(".")


def list_path(profile: str) -> Path:
    """Where a profile's pin list is."""
    return checkout.root() / "nix" / "pins" / f"{profile}.json"


def known() -> list[str]:
    """The profiles that have or should have a pin list, sorted."""
    nix = checkout.root() / "nix"
    return sorted({path.stem for path in (*nix.glob("profiles/*.toml"), *nix.glob("pins/*.json"))})


def load(profile: str) -> PinList:
    """Read a profile's pins. Raises `PIN.PROFILE` when the list is missing or is not valid."""
    path = list_path(profile)
    try:
        return PinList.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        found, do = (
            "no such file",
            f"Run: git restore nix/pins/{profile}.json, or: ./sparkserve pins lock {profile}. "
            f"Profiles: {', '.join(known())}.",
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        found = f"{first['msg']} at {place or 'the top'}"
        do = f"Run: git restore nix/pins/{profile}.json, or: ./sparkserve pins lock {profile}."
    raise SparkserveError(
        "PIN.PROFILE", expected=f"the pin list of {profile}", found=found, where=str(path), do=do
    )


def dump(pins: PinList) -> str:
    """The text of a pin list: one line per pin, so that a diff shows one line per change."""
    head = pins.model_dump(by_alias=True, exclude={"pins"})
    lines = [
        json.dumps(p.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False) for p in pins.pins
    ]
    top = json.dumps(head, indent=2)[:-2]
    body = ",\n    ".join(lines)
    return f'{top},\n  "pins": [\n    {body}\n  ]\n}}\n'


def save(pins: PinList) -> None:
    """Write a pin list so that a reader, or a kill, sees the old file or the new one and nothing between."""
    path = list_path(pins.profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(dump(pins))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
