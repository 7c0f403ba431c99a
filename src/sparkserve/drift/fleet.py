"""All nodes of a fleet asked how they are, and what differs between them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.drift import node as nodes
from sparkserve.drift.report import Difference, Report
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.host.system import System

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.runner import Runner


class Between(NamedTuple):
    """A fact that nodes must have alike, and what it is on each."""

    what: str
    values: dict[str, str]


class Drift(NamedTuple):
    """What was found: the nodes that answered, why others did not, and what the nodes do not share."""

    reports: dict[str, Report]
    silent: dict[str, Difference]
    between: tuple[Between, ...]

    @property
    def rows(self) -> list[tuple[str, Difference]]:
        """All differences with their nodes."""
        found = [(name, each) for name, report in self.reports.items() for each in report.differences]
        return [*found, *self.silent.items()]

    @property
    def differs(self) -> bool:
        """Whether anything is not as it is to be."""
        return bool(self.rows or self.between)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema": "sparkserve.verify/1",
            "nodes": {
                name: each.model_dump(mode="json", by_alias=True) for name, each in self.reports.items()
            },
            "silent": {name: each.model_dump(mode="json") for name, each in self.silent.items()},
            "between": [each._asdict() for each in self.between],
            "differs": self.differs,
        }


def here(*, live: bool, deep: bool) -> Drift:
    """This machine as a node, by its own current generation. Raises `ENGINE.STATE` when it has none."""
    folder = Path(commands.PROFILE)
    if not folder.exists():
        raise SparkserveError(
            "ENGINE.STATE",
            expected="a node, with a host closure as its current generation",
            found="nothing",
            where=str(folder),
            do="Leave out --here to ask the nodes of a fleet.",
        )
    return judge([nodes.of_group(System(), folder.resolve(), live=live, deep=deep)])


def of_fleet(fleet: str, *, live: bool, deep: bool) -> Drift:
    """Every node of `fleet`. One that does not answer differs too.

    Raises `ENGINE.STATE` when nothing of it is there, as `fleets.find`, and for a fleet of one `PLAN.SCHEMA`.
    """
    from sparkserve.local import fleets, single
    from sparkserve.reach.nodes import Nodes

    there = fleets.find(fleet)
    if isinstance(there, Nodes):
        with closing(there.connect()) as runner:
            return over(runner, there.nodes, live=live, deep=deep)
    runs = there.runs() if isinstance(there, single.Engine) else []
    if not runs:
        raise SparkserveError(
            "ENGINE.STATE",
            expected=f"{fleet} to be up",
            found="nothing of it",
            where=fleet,
            do=f"Run {command('up', fleet)}.",
        )
    return judge([nodes.of_run(run, live=live, deep=deep) for run in runs])


def over(runner: Runner, names: list[str], *, live: bool, deep: bool) -> Drift:
    """The nodes `names`, asked over `runner` all at once."""
    from sparkserve.transport import deliver

    answers: dict[str, Report | Difference] = {}

    def work(name: str) -> None:
        answers[name] = _ask(runner, name, live=live, deep=deep)

    deliver.parallel(runner, dict.fromkeys(names), work)
    silent = {name: each for name in names if isinstance(each := answers[name], Difference)}
    return judge([each for name in names if isinstance(each := answers[name], Report)], silent)


def judge(reports: list[Report], silent: Mapping[str, Difference] | None = None) -> Drift:
    """What the nodes' own reports say together. Pure."""
    facts = {report.node: report.facts for report in reports}
    found = []
    for what in dict.fromkeys(name for each in facts.values() for name in each):
        values = {node: each.get(what, "nothing") for node, each in facts.items()}
        if len(set(values.values())) > 1:
            found.append(Between(what, values))
    return Drift({report.node: report for report in reports}, dict(silent or {}), tuple(found))


def _ask(runner: Runner, name: str, *, live: bool, deep: bool) -> Report | Difference:
    try:
        result = runner.run(name, commands.drift(live=live, deep=deep))
    except SparkserveError as error:
        return Difference(part="node", what="ssh", expected=error.expected, found=error.found)
    try:
        return Report.model_validate_json(result.out)
    except ValidationError:
        said = "".join((result.err or result.out).strip().splitlines()[-1:])
        found = said or f"exit code {result.code}"
        return Difference(part="node", what="its answer", expected="that of this version", found=found)
