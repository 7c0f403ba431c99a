"""What the commands ask a fleet, in one form for all kinds of fleets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from sparkserve.plan import Plan
Part = Literal["engine", "supervisor", "front"]


class Serving(NamedTuple):
    """Who answers for a fleet: `state` is `ready` or one that `There.advice` knows, `reason` why, if known.

    `endpoint` answers from here for as long as this process lives. `answered` notes the seconds of an answer.
    Requests must show a key of `key_file`, if there is one.
    """

    state: str
    reason: str
    endpoint: str
    model: str
    answered: Callable[[float], object] = lambda seconds: None
    key_file: Path | None = None


class There(Protocol):
    """A fleet as it is: engines or nodes on this machine, Sparks, or nothing but old logs."""

    @property
    def name(self) -> str:
        """The fleet's name."""
        ...

    def take_down(self) -> bool:
        """Stop it; False when nothing ran. The caller holds the fleet's lock."""
        ...

    def report(self) -> list[dict[str, Any]]:
        """Each node, as `status --json` prints it."""
        ...

    def advice(self, state: str) -> str:
        """What to do about a node in this state; nothing when it is ready."""
        ...

    def serving(self) -> Serving:
        """Who answers for it."""
        ...

    def plan(self) -> Plan:
        """The plan that the head runs by, whatever the fleet's files say now. Raises `ENGINE.STATE`."""
        ...

    def logs(self, lines: int, *, follow: bool, part: Part, node: str | None) -> Generator[str, None, None]:
        """The last lines of each node's newest log, each with the node's name when there are several.

        `follow` goes on with new ones, over new starts, until nobody reads stdout any more.
        """
        ...
