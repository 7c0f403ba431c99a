"""What a promotion rests on: the gates' evidence and bench results, all of the fleet id that is promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench import arms, results
from sparkserve.deploy.baseline import Bench, File, Proof, Reference
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.gates import files
from sparkserve.pins.store import file_sha256
from sparkserve.stats.describe import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sparkserve.bench.arms import Arm
    from sparkserve.gates.evidence import Evidence


def gates(folder: Path, declared: Sequence[str], fleet: str, fleet_id: str) -> tuple[Proof, ...]:
    """The newest evidence of each gate in `declared` that is of `fleet_id`, in that order.

    The newest counts: one that failed is not made good by an older one that passed. Raises `GATE.FAILED` when
    one did not pass, `GATE.EVIDENCE` when there is none or a file in `folder` is no evidence.
    """
    found = sorted(
        ((files.read(path), path) for path in folder.glob("*.json")), key=lambda each: each[0].started
    )
    proofs, failed, missing = [], [], []
    for gate in declared:
        of_gate = [each for each in found if each[0].gate == gate]
        ours = [each for each in of_gate if each[0].subject.fleet_id == fleet_id]
        if not ours:
            ids = sorted({(each.subject.fleet_id or "none")[:12] for each, _ in of_gate})
            missing.append(f"{gate}: {'only of the fleet id ' if ids else 'none'}{', '.join(ids)}")
            continue
        evidence, path = ours[-1]
        if not (evidence.ran and evidence.passed):
            said = "failed" if evidence.ran else "could not run"
            failed.append(f"{gate} {said}: {evidence.summary} ({path.name})")
            continue
        proofs.append(_proof(evidence, path))
    if failed or missing:
        raise SparkserveError(
            "GATE.FAILED" if failed else "GATE.EVIDENCE",
            expected=f"for each declared gate, evidence of the fleet id {fleet_id[:12]} that passed",
            found="; ".join([*failed, *missing]),
            where=str(folder),
            do=f"{command('gate run', fleet)} makes it while the fleet serves; then promote again.",
        )
    return tuple(proofs)


def _proof(evidence: Evidence, path: Path) -> Proof:
    return Proof(
        gate=evidence.gate,
        passed=True,
        quick=evidence.quick,
        summary=evidence.summary,
        started=evidence.started,
        measured=evidence.measured,
        limits=evidence.limits,
        file=path.name,
        sha256=file_sha256(path),
    )


def bench(paths: Sequence[Path], fleet: str, fleet_id: str) -> Bench:
    """What the result files say, together. Raises `BENCH.RESULT` for one of another fleet id, or of none."""
    found = [results.read(path) for path in paths]
    for path, result in zip(paths, found, strict=True):
        for boot in result.boots:
            if boot.subject.fleet_id != fleet_id:
                raise SparkserveError(
                    "BENCH.RESULT",
                    expected=f"boots of the fleet id {fleet_id[:12]}",
                    found=f"boot {boot.id} of {(boot.subject.fleet_id or 'no fleet id')[:12]}",
                    where=str(path),
                    do="Measure what is promoted, while it serves: "
                    + command("bench decode --output FILE", fleet),
                )
    arm = arms.read("bench", found)
    arms.check(item for boot in arm.boots.values() for item in boot.items())
    references = tuple(_references(arm))
    if not references:
        raise arms.unlike("a metric that all boots have at a point", "none", ", ".join(map(str, paths)))
    named = tuple(File(name=path.name, sha256=file_sha256(path)) for path in paths)
    return Bench(files=named, references=references, notes=arm.notes)


def _references(arm: Arm) -> Iterator[Reference]:
    for point in dict.fromkeys(name for boot in arm.boots.values() for name in boot):
        boots = [boot for boot in arm.boots.values() if point in boot]
        if not (common := arms.rounds(point, boots)):
            continue
        for metric in results.METRICS:
            if values := arms.means(point, metric, boots, common):
                all_ = describe(values)
                yield Reference(
                    point=point, metric=metric, boots=all_.n, median=all_.median, low=all_.low, high=all_.high
                )
