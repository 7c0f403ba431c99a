"""Three nodes that say what a promotion asks for, and the evidence and results that it rests on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deploy_node
import engine_values
import gate_values
import report_values

from sparkserve import commands
from sparkserve.deploy.promote import Wish, make
from sparkserve.deploy.state import Deployment, Past, State
from sparkserve.drift.report import Report, difference
from sparkserve.gates.evidence import Subject
from sparkserve.runner import Recorded, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.bench import results
    from sparkserve.deploy.baseline import Baseline

FLEET = "tp3-triangle"
NODES = ("spark-0", "spark-1", "spark-2")
GOLDEN = Path(__file__).parents[1] / "golden" / FLEET
ID, OTHER = "5f" * 32, "0a" * 32
GATES = ("smoke", "nan")
ADAPTERS = [{"name": "oneshot-collectives", "settings": {"limit_kib": 64}}]
CHANGED = {"gates": list(GATES), "adapters": ADAPTERS}


def path(node: str, version: str = "b") -> str:
    """A host closure in the store."""
    return f"/nix/store/{version * 32}-host-{FLEET}-{node}"


def past(node: str, version: str, outcome: str = "keep") -> Past:
    """A deployment that has ended, with `version` current after it."""
    given = {"id": version * 12, "epoch": 1, "outcome": outcome, "path": path(node, version), "generation": 2}
    return Past.model_validate({**given, "ended_at": f"2026-12-0{ord(version) - 96}T00:00:00Z"})


@dataclass
class Node:
    """One node: its generations are `a` and `b`, of which b is current and kept."""

    name: str
    generations: dict[int, str] = field(default_factory=lambda: {1: "a", 2: "b"})
    current: int | None = 2
    ids: dict[str, str] = field(default_factory=lambda: {"a": OTHER, "b": ID})
    of: str = ""  # which node's the closures are, its own unless named
    runs: str = ""  # the closure whose units systemd has, the current one unless named
    state: State | None = None
    pins: str = '{"base": [{"name": "libc6", "version": "2.36", "sha256": "' + "1" * 64 + '"}]}'
    drift: Report | None = None

    def answers(self) -> dict[str, Result]:
        """What it says to each command."""
        made: dict[str, Result] = {}
        current = self.path(self.generations[self.current]) if self.current else ""
        program = f"{current}/bin/sparkserve"
        lines = [f"{number} {self.path(version)}" for number, version in self.generations.items()]
        if self.current:
            lines.append(f"current {self.current}")
        paths = sorted(self.path(version) for version in set(self.generations.values()))
        made[commands.generations().line()] = Result(0, "".join(f"{line}\n" for line in lines))
        made[commands.read_closures(*paths).line()] = Result(0, "".join(map(self._documents, paths)))
        made[commands.held("deploy").line()] = Result(1)
        made[commands.held("kept").line()] = Result(1)
        made[commands.current().line()] = Result(0, f"{current}\n") if current else Result(1)
        state = self.state or State(past=(past(self.name, "b"),))
        made[commands.deploy_member(program, "look").line()] = Result(0, state.model_dump_json())
        for units in (["sparkserve-rank.service"], ["sparkserve-rank.service", "sparkserve-front.service"]):
            runs = self.runs or current
            shown = [f"Id={unit}\nActiveState=active\nExecStart={{ path={runs}/bin/x }}" for unit in units]
            made[commands.shown_units(*units).line()] = Result(0, "\n\n".join(shown))
        for each in paths:
            made[commands.read_closures(each).line()] = Result(0, self._documents(each))
        report = self.drift or drift(self.name)
        said = report.model_dump_json(by_alias=True)
        made[commands.drift(live=False, deep=False).line()] = Result(0, said)
        return made

    def path(self, version: str) -> str:
        """The closure of a version on this node."""
        return path(self.name, version)

    def _documents(self, closure: str) -> str:
        return "".join(f"{text}\0" for text in (self._plan(), self._closure(closure), self.pins))

    def _plan(self) -> str:
        plan = json.loads((GOLDEN / f"{self.of or self.name}.json").read_text())
        return json.dumps({**plan, **CHANGED})

    def _closure(self, closure: str) -> str:
        made = engine_values.closure(fleet_id=self.ids[closure.rpartition("/")[2][0]])
        return made.model_dump_json(by_alias=True)


def drift(node: str, *differences: tuple[str, str, str, str]) -> Report:
    """What a node says of itself beside its closure."""
    return Report(
        schema="sparkserve.drift/1",
        node=node,
        closure=path(node),
        generation=2,
        fleet_id=ID,
        engine=None,
        checked={},
        differences=tuple(difference(*each) for each in differences),
        facts={"kernel": "6.11.0-1016-nvidia", "page size": "4096", "NVIDIA driver": "580.95.05"},
    )


def opened(node: str) -> State:
    """The state of a node with an open deployment."""
    plan = deploy_node.plan(None, path(node, "a"))
    given = {"id": plan.id, "epoch": 2, "plan": plan, "deployer": "somebody", "since": "2026-12-03T00:00:00Z"}
    return State(open=Deployment.model_validate(given), past=(past(node, "b"),))


class World:
    """The nodes, and the files that a promotion names. What is wrong is set before `make`."""

    def __init__(self, folder: Path) -> None:
        self.nodes = {name: Node(name) for name in NODES}
        self.evidence, self.results = folder / "evidence", folder / "results"
        for each in (self.evidence, self.results):
            each.mkdir()
        for gate in GATES:
            self.proof(gate)

    def proof(self, gate: str, *, at: str = "22:00", id: str | None = ID, **changed: Any) -> Path:
        """An evidence file in the folder."""
        subject = Subject(endpoint="http://127.0.0.1:1", model="m", fleet=FLEET, fleet_id=id)
        measured = {"measured": {"requests": 2, "worst": 0.5}, "limits": {"worst": 1}}
        made = gate_values.evidence(
            **({"gate": gate, "subject": subject, "started": f"2026-12-02T{at}:00.000+00:00"} | measured),
            **changed,
        )
        file = self.evidence / f"{gate}-{at.replace(':', '')}.json"
        file.write_text(made.model_dump_json(by_alias=True, indent=2) + "\n")
        return file

    def bench(self, *boots: results.Boot, name: str = "r7.json") -> Path:
        """A result file."""
        file = self.results / name
        file.write_text(report_values.result(boots).model_dump_json(by_alias=True))
        return file

    def runner(self) -> Recorded:
        """Asks the nodes."""
        found: dict[tuple[str, str] | str, Result] = {
            (node.name, line): each for node in self.nodes.values() for line, each in node.answers().items()
        }
        return Recorded(found, allow=commands.Safety.READS_HOSTS)

    def make(self, *bench: Path, previous: Baseline | None = None, name: str = "r7") -> Baseline:
        """Promote, without the file."""
        wish = Wish(name, "it is faster", self.evidence, bench)
        return make(self.runner(), FLEET, NODES, wish, previous)


def boot(number: int, steps: Sequence[float] = (40.0, 42.0), *, id: str = ID) -> results.Boot:
    """A boot with one point, of samples whose steps took so many milliseconds."""
    samples = [report_values.sample({"step_ms": step}, round=at) for at, step in enumerate(steps)]
    subject = Subject(endpoint="http://127.0.0.1:1", model="m", fleet=FLEET, fleet_id=id, boot=str(number))
    return report_values.boot(number, [report_values.point("prose", 1, samples)], subject=subject)
