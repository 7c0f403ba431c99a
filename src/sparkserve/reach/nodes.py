"""A fleet of several nodes, asked over a runner: the same questions whether they are here or elsewhere."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.errors import SparkserveError
from sparkserve.fleet import names
from sparkserve.group.look import Look
from sparkserve.reach import health, rows
from sparkserve.reach import logs as reading
from sparkserve.reach.health import Health
from sparkserve.reach.rows import Missing
from sparkserve.reach.there import Serving
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from collections.abc import Generator

    from sparkserve.plan import Plan
    from sparkserve.reach.there import Part
    from sparkserve.reach.way import Way
    from sparkserve.runner import Runner

# What is asked of an endpoint is asked until this process ends, and so long it must be reached.
_REACHED = ExitStack()
atexit.register(_REACHED.close)


class Nodes(ABC):
    """The fleet `name`; `There` but for what depends on where its nodes are."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def way(self) -> Way:
        """To its nodes. Raises `ENGINE.STATE` when there are none."""

    @abstractmethod
    def take_down(self) -> bool:
        """See `There.take_down`."""

    @abstractmethod
    def advice(self, state: str) -> str:
        """See `There.advice`."""

    def connect(self, allow: Safety = Safety.READS_HOSTS) -> Runner:
        """A new runner to its nodes, which the caller closes."""
        return self.way().connect(allow)

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return self.way().nodes

    def named(self, node: str | None) -> str:
        """The node of this name, the head without one. Raises `FLEET.NAME` when there is no such node."""
        if node is not None and node not in self.nodes:
            raise names.no_node(self.name, self.nodes, node)
        return node or self.nodes[0]

    def report(self) -> list[dict[str, Any]]:
        """See `There.report`. All nodes are asked at once; each of the few questions has ten seconds."""
        way = self.way()
        looks: dict[str, Look | Missing] = dict.fromkeys(way.nodes, rows.OFF)
        with closing(way.connect()) as runner, ThreadPoolExecutor(1) as pool:
            front = pool.submit(_front, way, runner)

            def work(node: str) -> None:
                looks[node] = _look(runner, node)

            parallel(runner, dict.fromkeys(way.on), work)
            plan, said = front.result()
        # Its nodes are those that were asked: files may have more than the head knows of.
        return rows.rows(plan.model_copy(update={"fleet": way.head.fleet}), looks, said)

    def serving(self) -> Serving:
        """See `There.serving`: the front answers for the group."""
        way = self.way()
        try:
            with closing(way.connect()) as runner:
                plan = way.current(runner)
            endpoint = _REACHED.enter_context(way.endpoint(plan.serving))
        except SparkserveError as error:
            if error.id != "NODE.UNREACHABLE":
                raise
            known = way.head.serving
            return Serving("unreachable", error.found, known.endpoint, known.model)
        verdict, reason, _ = health.ask(endpoint)
        state = "ready" if verdict == "ok" else verdict or "silent"
        return Serving(state, reason, endpoint, plan.serving.model, key_file=plan.serving.key_file)

    def plan(self) -> Plan:
        """See `There.plan`."""
        way = self.way()
        with closing(way.connect()) as runner:
            return way.current(runner)

    def logs(self, lines: int, *, follow: bool, part: Part, node: str | None) -> Generator[str, None, None]:
        """See `There.logs`."""
        nodes = [self.named(node)] if node or part == "front" else self.nodes
        with closing(self.connect()) as runner:
            found = reading.read(runner, nodes, part, lines, follow=follow)
            with closing(found):
                for name, line in found:
                    yield line if len(nodes) == 1 else f"{name} | {line}"


def _front(way: Way, runner: Runner) -> tuple[Plan, Health]:
    """The plan that the head runs by, else the one that is known, and what the endpoint says."""
    plan = way.head
    try:
        plan = way.current(runner)
        with way.endpoint(plan.serving) as endpoint:
            return plan, health.ask(endpoint)
    except SparkserveError as error:
        if error.id == "ENGINE.STATE":
            raise
        return plan, Health("", error.found)


def _look(runner: Runner, node: str) -> Look | Missing:
    try:
        result = runner.run(node, commands.look())
        return Look.model_validate_json(result.out)
    except SparkserveError as error:
        return Missing("unreachable", error.found)
    except ValidationError:
        said = result.err.strip().splitlines()[-1:]
        return Missing("lost", f"it has no sparkserve of this version ({''.join(said) or 'no message'})")
