"""What an adapter is, and what it gets.

An adapter is a folder here. `adapter.toml` is what it says about itself (`Declaration`); its package has the
class `Adapter`, made with the settings in every process of the engine. Its methods that `[hooks]` names are
put around their targets: `method(original, *args, **kwargs)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

EXACTNESS = ("bit-identical", "exact in distribution", "numerically equivalent", "changes output")


class Refused(Exception):  # noqa: N818 - what happened to the boot
    """The boot cannot go on; the text says why. `adapter` is the one at fault, if it is one."""

    def __init__(self, reason: str, *, adapter: str | None = None) -> None:
        super().__init__(reason)
        self.adapter = adapter


class Failure(Exception):  # noqa: N818 - subclasses say what
    """An adapter cannot go on; `fields` go into the line that says so."""

    def __init__(self, reason: str, **fields: Any) -> None:
        super().__init__(reason)
        self.fields = fields


@dataclass(frozen=True)
class Setting:
    """A whole number and its limits, which belong to the range."""

    default: int
    min: int
    max: int
    description: str


@dataclass(frozen=True)
class Declaration:
    """`adapter.toml`. `exactness` is one of `EXACTNESS`; `conflicts` are names of adapters."""

    name: str
    title: str
    description: str
    exactness: str
    memory: str
    effect: str
    upstream: str
    conflicts: tuple[str, ...]
    hooks: Mapping[str, str]
    settings: Mapping[str, Setting]

    def complete(self, given: Mapping[str, Any]) -> dict[str, int]:
        """All settings, defaults for those not given. Raises `Refused` for an unknown or wrong one."""
        for name, value in given.items():
            setting = self.settings.get(name)
            if setting is None:
                raise Refused(f"no setting {name}; there are {', '.join(self.settings)}", adapter=self.name)
            if type(value) is not int or not setting.min <= value <= setting.max:
                wanted = f"{setting.min} to {setting.max}"
                raise Refused(f"{name} is {value!r}, not a whole number from {wanted}", adapter=self.name)
        return {name: given.get(name, setting.default) for name, setting in self.settings.items()}


class Link(NamedTuple):
    """One stripe of the cable to `peer`, as in the plan's `fabric.links`."""

    interface: str
    address: str
    peer: int
    peer_address: str
    stripe: int


class Rendezvous(Protocol):
    """A place where ranks leave small values for each other, on the management network."""

    def put(self, key: str, value: str) -> None:
        """Leave `value` under `key`."""

    def get(self, key: str, timeout_s: float) -> str:
        """The value under `key`, waiting for it. Raises TimeoutError."""


class Group(NamedTuple):
    """The ranks of this boot. `token` is 32 random bytes, the same on all ranks, new on every boot."""

    rank: int
    size: int
    links: tuple[Link, ...]
    meet: Rendezvous
    token: bytes


class Adapter(Protocol):
    """The code of an adapter."""

    def __init__(self, settings: Mapping[str, int]) -> None: ...

    def start(self, group: Group) -> None:
        """Get ready, on every rank, when all agree on adapters and before the first collective.

        Raises anything: the boot ends.
        """


Event = Literal["armed", "refused", "failed"]
