"""How the nodes of a fleet are reached. What is asked over it does not depend on where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sparkserve.commands import Safety

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from sparkserve.plan import Plan, Serving
    from sparkserve.runner import Runner


class Way(Protocol):
    """To a fleet of several nodes: on this machine (`local.several.Here`), or Sparks (`reach.afar.Afar`)."""

    @property
    def head(self) -> Plan:
        """The plan of its head, as far as it is known without asking."""
        ...

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        ...

    @property
    def on(self) -> Sequence[str]:
        """Those that have power, as far as can be known without asking them."""
        ...

    def connect(self, allow: Safety = Safety.READS_HOSTS) -> Runner:
        """A new runner, which the caller closes."""
        ...

    def current(self, runner: Runner) -> Plan:
        """The plan that the head runs by. Raises `ENGINE.STATE` when it has none of this fleet, `NODE.*`."""
        ...

    def endpoint(self, serving: Serving) -> AbstractContextManager[str]:
        """Where the front of the head, which serves by `serving`, answers from here. Raises `NODE.*`."""
        ...
