"""Where a run measures: a fleet of this checkout, or an endpoint of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import click

from sparkserve.gates import subject

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.bench.watch import Source
    from sparkserve.gates.subject import Target

ONE_BOOT = "an endpoint has one boot: several need --fleet, whose engine can be restarted"
_OURS = ("127.0.0.1", "localhost", "::1")


class Fleet(NamedTuple):
    """The fleet `name`. Requests show a key of `key_file`, or of the file that its plan names."""

    name: str
    key_file: Path | None = None

    def target(self) -> Target:
        """See `Place.target`."""
        return subject.of_fleet(self.name, self.key_file)

    def source(self, target: Target) -> Source:
        """See `Place.source`."""
        from sparkserve.bench.watch import Here, There
        from sparkserve.local import fleets
        from sparkserve.reach.nodes import Nodes

        there = fleets.find(self.name)
        if isinstance(there, Nodes):
            return There(there.connect(), tuple(there.nodes))
        return Here(target.plan.node.name if target.plan else self.name)

    def restart(self) -> None:
        """See `Place.restart`."""
        from sparkserve.local import fleets

        fleets.restart(self.name)


class Endpoint(NamedTuple):
    """`model` at `url`, asked with a key of `key_file`. Its machine is watched when it is this one."""

    url: str
    model: str
    key_file: Path | None = None

    def target(self) -> Target:
        """See `Place.target`."""
        return subject.of_endpoint(self.url, self.model, self.key_file)

    def source(self, target: Target) -> Source | None:
        """See `Place.source`."""
        from sparkserve.bench.watch import Here

        return Here("localhost") if urlsplit(self.url).hostname in _OURS else None

    def restart(self) -> None:
        """Nobody starts the engine of others. Raises `click.UsageError`."""
        raise click.UsageError(ONE_BOOT)
