"""What supervisors, the controller and operators say to each other: JSON objects, one a line, over TCP.

A rank connects and says Hello. The controller answers with orders (Preflight, Start, Stop) or Refused; the
rank reports (Checked, Started, Reached, Adapter, Ended, Stopped) and says Beat once a second. `number` is the
boot that a message is about; one about an older boot is ignored. An operator on the head says Ask.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sparkserve.group import wire

BEAT_S = 1.0


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hello(_Message):
    """A rank introduces itself. `runs`: see identity.py."""

    type: Literal["hello"] = "hello"
    version: int = wire.VERSION
    rank: int
    node: str
    fleet_id: str
    runs: dict[str, bool | int | float | str]


class Refused(_Message):
    """The controller does not talk to this rank; the connection ends."""

    type: Literal["refused"] = "refused"
    reason: str


class Preflight(_Message):
    """Check that a boot could begin: nothing old alive, ports free, every peer within reach."""

    type: Literal["preflight"] = "preflight"
    number: int
    token: str
    port: int
    seconds: float


class Checked(_Message):
    """What stands against a boot on this rank, a sentence each; empty when nothing does."""

    type: Literal["checked"] = "checked"
    number: int
    problems: tuple[str, ...]


class Start(_Message):
    """Start the engine. It meets the others at `port` of the head."""

    type: Literal["start"] = "start"
    number: int
    port: int


class Started(_Message):
    """The engine's process runs."""

    type: Literal["started"] = "started"
    number: int


class Reached(_Message):
    """The engine came to a phase (a name of `phases.PHASES`)."""

    type: Literal["reached"] = "reached"
    number: int
    phase: str


class Adapter(_Message):
    """An adapter's line in the engine's log, as it stands there."""

    type: Literal["adapter"] = "adapter"
    number: int
    line: dict[str, Any]


class Beat(_Message):
    """The rank is there. `trouble` is what it sees go wrong; `quiet_s` is since its engine last logged."""

    type: Literal["beat"] = "beat"
    trouble: str = ""
    quiet_s: float | None = None


class Ended(_Message):
    """The engine ended by itself, or cannot go on; `log` has its last lines."""

    type: Literal["ended"] = "ended"
    number: int
    reason: str
    log: str = ""


class Stop(_Message):
    """End the engine at once: the front has drained it, and asking SGLang to end takes it 2 to 12 s more."""

    type: Literal["stop"] = "stop"
    number: int


class Stopped(_Message):
    """Nothing of the boot runs on this rank any more."""

    type: Literal["stopped"] = "stopped"
    number: int


class Bye(_Message):
    """The supervisor is being stopped, and why."""

    type: Literal["bye"] = "bye"
    reason: str


class Ask(_Message):
    """An operator's wish; the answer is a Status."""

    type: Literal["ask"] = "ask"
    version: int = wire.VERSION
    what: Literal["status", "start", "stop"]


class RankStatus(_Message):
    """One rank as the controller sees it. `phase` is None while no engine runs there."""

    rank: int
    node: str
    connected: bool
    phase: str | None = None
    phase_s: float | None = None
    adapters: tuple[str, ...] = ()
    trouble: str = ""
    beat_age_s: float | None = None
    fleet_id: str | None = None


class PastStart(_Message):
    """A start of the group: unix times, why it ended ("" while it runs), what the rank at fault logged."""

    number: int
    at: float
    up_at: float | None = None
    ended_at: float | None = None
    reason: str = ""
    log: str = ""


class Status(_Message):
    """The group as a whole."""

    type: Literal["status"] = "status"
    fleet: str
    fleet_id: str
    state: Literal["up", "starting", "down", "draining"]
    reason: str
    wanted: bool
    number: int
    since: float
    phase: str | None
    phase_s: float | None
    ranks: tuple[RankStatus, ...]
    starts: tuple[PastStart, ...]

    @property
    def key(self) -> str:
        """See `wire.key`."""
        return wire.key(self.number, self.state, self.phase, self.wanted, self.reason)


Message = (
    Hello | Refused | Preflight | Checked | Start | Started | Reached | Adapter | Beat | Ended | Stop
    | Stopped | Bye | Ask | Status
)  # fmt: skip
_ANY: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


class ProtocolError(Exception):
    """The other side said something that this version does not understand, or nothing at all."""


def encode(message: Message) -> bytes:
    """The line for `message`."""
    return message.model_dump_json().encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line. Raises `ProtocolError`."""
    try:
        return _ANY.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ProtocolError(
            f"not a message of version {wire.VERSION}: {first['msg']}: {line[:200]!r}"
        ) from None
