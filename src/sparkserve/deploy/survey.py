"""What the nodes have now, asked before a deployment is planned. Changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve import commands
from sparkserve.deploy.lease import look_at
from sparkserve.deploy.plan import Base
from sparkserve.deploy.state import leased
from sparkserve.runner import check
from sparkserve.transport.deliver import generations, parallel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkserve.deploy.state import State
    from sparkserve.runner import Runner
    from sparkserve.transport.deliver import Generation


class Described(NamedTuple):
    """What a host closure says of itself; `plan` is its plan as JSON text."""

    fleet: str
    node: str
    fleet_id: str
    plan: str


class Found(NamedTuple):
    """One node: its generations by number, what their closures are (None: not ours), its deployments."""

    generations: list[Generation]
    described: dict[str, Described | None]
    state: State

    @property
    def base(self) -> Base | None:
        """What is current."""
        current = next((each for each in self.generations if each.current), None)
        return Base(generation=current.number, path=current.path) if current else None

    @property
    def fleet_id(self) -> str | None:
        """That of what is current."""
        there = self.described.get(self.base.path) if self.base else None
        return there.fleet_id if there else None

    @property
    def kept(self) -> dict[str, str]:
        """The closures that a deployment has kept, and when the last one did."""
        return {past.path: past.ended_at for past in self.state.past if past.path and past.outcome == "keep"}

    def rows(self, node: str) -> list[dict[str, Any]]:
        """A row for each generation, as `generations --json` prints it."""
        return [self._row(node, each) for each in self.generations]

    def _row(self, node: str, each: Generation) -> dict[str, Any]:
        there = self.described[each.path]
        ours = there is not None and there.node == node
        return {
            "node": node,
            "generation": each.number,
            "path": each.path,
            "current": each.current,
            "fleet_id": there.fleet_id if there else None,
            "state": "foreign" if not ours else "kept" if each.path in self.kept else "experimental",
            "since": self.kept.get(each.path),
        }


def survey(runner: Runner, nodes: Iterable[str]) -> dict[str, Found]:
    """What each of `nodes` has. Raises the first node's error."""
    found: dict[str, Found] = {}
    names = list(nodes)

    def look(node: str) -> None:
        there = generations(runner, node)
        described = descriptions(runner, node, sorted({each.path for each in there}))
        found[node] = Found(there, described, look_at(runner, node))

    parallel(runner, dict.fromkeys(names), look)
    return {node: found[node] for node in names}


def descriptions(runner: Runner, node: str, paths: Iterable[str]) -> dict[str, Described | None]:
    """What the host closures at `paths` on the node say of themselves; None for what is none of ours."""
    wanted = list(paths)
    if not wanted:
        return {}
    texts = check(runner, node, commands.read_closures(*wanted)).split("\0")
    return {path: _parse(*texts[3 * at : 3 * at + 2]) for at, path in enumerate(wanted)}


def _parse(plan: str, closure: str) -> Described | None:
    try:
        value = json.loads(plan)
        return Described(value["fleet"]["name"], value["node"]["name"], json.loads(closure)["fleet_id"], plan)
    except (ValueError, KeyError, TypeError):
        return None


def unleased(runner: Runner, nodes: Iterable[str]) -> dict[str, Found]:
    """As `survey`. Raises `DEPLOY.LEASE` when a deployment is open on one of `nodes`."""
    found = survey(runner, nodes)
    for node, there in found.items():
        _refuse(node, there.state)
    return found


def refuse_open(runner: Runner, nodes: Iterable[str]) -> None:
    """Raise `DEPLOY.LEASE` when a deployment is open on one of `nodes`. Nothing else is asked."""

    def look(node: str) -> None:
        if runner.run(node, commands.held("deploy")).code == 0:
            _refuse(node, look_at(runner, node))

    parallel(runner, dict.fromkeys(nodes), look)


def _refuse(node: str, state: State) -> None:
    if state.open is not None:
        raise leased(state.open, node)
