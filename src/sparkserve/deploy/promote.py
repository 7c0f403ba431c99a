"""Promotes what all nodes of a fleet run: checks what it rests on, and writes a baseline.

No node's generation changes. Each node holds its closure from then on, whoever collects garbage there.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from pydantic import TypeAdapter, ValidationError

from sparkserve import commands, plan, utc
from sparkserve.commands import Safety
from sparkserve.deploy import baseline, effect, history, proofs, survey, way
from sparkserve.deploy.baseline import Baseline, Node, Observed, Pin
from sparkserve.drift import fleet as drift
from sparkserve.engine.closure import Closure
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.gates import files, subject
from sparkserve.output import write_file
from sparkserve.runner import check
from sparkserve.terminal import phase
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sparkserve.deploy.baseline import Bench, Proof
    from sparkserve.deploy.survey import Found
    from sparkserve.plan import Plan
    from sparkserve.runner import Runner

HOLD = "baseline-"  # and the baseline's name: a GC root of each node
_PINS = TypeAdapter(dict[str, tuple[Pin, ...]])


class Wish(NamedTuple):
    """What an owner asks for: `evidence` is a folder, None for where gates leave theirs."""

    name: str
    why: str
    evidence: Path | None = None
    bench: Sequence[Path] = ()


class _Read(NamedTuple):
    """What a host closure has in it."""

    plan: Plan
    closure: Closure
    pins: dict[str, tuple[Pin, ...]]


def promote(fleet: str, wish: Wish) -> tuple[Baseline, Path]:
    """Promote what `fleet` runs; the baseline and its file. Raises as `make`, and `BASELINE.NAME`.

    Nothing is written when it raises, but for holds on nodes when one of them went away in the end.
    """
    with history.changing(fleet):
        known = baseline.known()
        baseline.check_name(wish.name, known)
        to = way.to(fleet)
        previous = baseline.newest(known, fleet)
        with closing(to.connect(Safety.CHANGES_HOSTS)) as runner:
            with phase("Ask the nodes"):
                made = make(runner, fleet, to.nodes, wish, previous)
            paths = {node.name: node.closure for node in made.nodes}

            def hold(node: str) -> None:
                check(runner, node, commands.hold(f"{HOLD}{made.name}", paths[node]))
                check(runner, node, commands.sync("/nix"))

            parallel(runner, paths, hold)
        path = baseline.folder() / made.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, made.text())
        return made, path


def make(runner: Runner, fleet: str, nodes: Sequence[str], wish: Wish, previous: Baseline | None) -> Baseline:
    """The baseline of what `nodes` run. Changes nothing.

    Raises `DEPLOY.LEASE` while a deployment is open, `DEPLOY.BASE` unless all nodes run one kept generation,
    `NODE.CLOSURE` for a closure of another version, and as `proofs.gates` and `proofs.bench`.
    """
    found = survey.unleased(runner, nodes)
    fleet_id = _one(fleet, found)
    effect.check(runner, fleet, found)
    read = {node: _read(runner, fleet, node, there.base.path) for node, there in found.items() if there.base}
    head = read[nodes[0]]
    gates = proofs.gates(wish.evidence or files.folder(), head.plan.gates, fleet, fleet_id)
    bench = proofs.bench(wish.bench, fleet, fleet_id) if wish.bench else None
    observed = _observed(runner, fleet, nodes)
    return Baseline(
        name=wish.name,
        fleet=fleet,
        fleet_id=fleet_id,
        promoted_at=utc.now(),
        why=wish.why,
        previous=previous.name if previous else None,
        nodes=tuple(
            Node(
                name=node,
                generation=there.base.generation,
                closure=there.base.path,
                kept_at=there.kept[there.base.path],
                plan_sha256=subject.digest(read[node].plan),
                observed=observed[node],
            )
            for node, there in found.items()
            if there.base
        ),
        root=head.closure.root.digest,
        harness=head.closure.harness.digest,
        adapters=head.plan.adapters,
        pins=head.pins,
        gates=gates,
        bench=bench,
        warnings=tuple(_warnings(gates, bench, observed)),
    )


def _one(fleet: str, found: Mapping[str, Found]) -> str:
    """The fleet id that all nodes run, and have kept."""
    ids = {_kept(fleet, node, there) for node, there in found.items()}
    if len(ids) == 1 and (one := ids.pop()) is not None:
        return one
    raise SparkserveError(
        "DEPLOY.BASE",
        expected="one fleet id on all nodes, which a deployment has proved and kept",
        found=", ".join(f"{node}: {_words(fleet, node, there)}" for node, there in found.items()),
        where=fleet,
        do=f"{command('deploy --apply', fleet)} proves and keeps it. What runs by up is experimental.",
    )


def _kept(fleet: str, node: str, there: Found) -> str | None:
    """The fleet id of what is current, when it is the node's own and kept."""
    described = there.described[there.base.path] if there.base else None
    ours = described is not None and (described.fleet, described.node) == (fleet, node)
    return there.fleet_id if ours and there.base and there.base.path in there.kept else None


def _words(fleet: str, node: str, there: Found) -> str:
    if there.base is None:
        return "nothing"
    if kept := _kept(fleet, node, there):
        return f"{kept[:12]}, kept"
    state = next(row["state"] for row in there.rows(node) if row["current"])
    return f"generation {there.base.generation} of {(there.fleet_id or 'no fleet id')[:12]}, {state}"


def _read(runner: Runner, fleet: str, node: str, path: str) -> _Read:
    texts = check(runner, node, commands.read_closures(path)).split("\0")
    try:
        return _Read(
            plan.parse(json.loads(texts[0])),
            Closure.model_validate_json(texts[1]),
            _PINS.validate_json(texts[2]),
        )
    except (SparkserveError, ValidationError, ValueError, IndexError) as error:
        raise SparkserveError(
            "NODE.CLOSURE",
            expected="a host closure of this version, with plan.json, closure.json and pins.json",
            found=" ".join(str(error).split())[:300],
            where=f"{node}, {path}",
            do=f"Deploy with this version first: {command('deploy', fleet)}.",
        ) from None


def _observed(runner: Runner, fleet: str, nodes: Sequence[str]) -> dict[str, Observed]:
    found = drift.over(runner, list(nodes), live=False, deep=False)
    for node, silent in found.silent.items():
        raise SparkserveError(
            "NODE.COMMAND",
            expected=f"what {node} says of itself: {silent.expected}",
            found=silent.found,
            where=node,
            do=f"{command('verify', fleet)} shows more.",
        )
    return {
        node: Observed(
            kernel=report.facts["kernel"],
            page_size=report.facts["page size"],
            driver=report.facts["NVIDIA driver"],
            differences=tuple(
                f"{each.part}, {each.what}: expected {each.expected}, found {each.found}"
                for each in report.differences
            ),
        )
        for node, report in found.reports.items()
    }


def _warnings(gates: Sequence[Proof], bench: Bench | None, observed: Mapping[str, Observed]) -> Iterator[str]:
    if not gates:
        yield "The plan declares no gates: nothing proves what it answers."
    if quick := [proof.gate for proof in gates if proof.quick]:
        yield f"Quick evidence, of fewer and shorter requests: {', '.join(quick)}."
    if bench is None:
        yield "No bench result: nothing says how fast it was."
    elif alone := sorted({each.point for each in bench.references if each.boots == 1}):
        yield f"One boot gives no interval: {', '.join(alone)}."
    for node, there in observed.items():
        if there.differences:
            yield f"{node} differs from its closure in {len(there.differences)} values."
