"""What a reader of a comparison must know beside its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.bench.arms import Arm

ONE_BOOT = (
    "An arm of one boot: boots of one build differ by about 3 %, and two arms of the same code were once "
    "told apart by 2.4 % (owen 6.5). Nothing can be concluded. Measure at least 3 boots in each arm."
)


def of(a: Arm, b: Arm, judged: int) -> Iterator[str]:
    """Sentences about two arms, `judged` of whose points decide."""
    sizes = len(a.boots), len(b.boots)
    if min(sizes) < 2:
        yield ONE_BOOT
    else:
        yield (
            f"The {judged} points that gate are judged together: of comparisons of equal arms, 5 in 100 call "
            "any of them better or worse. Another metric is judged for itself."
        )
        if sizes[0] != sizes[1]:
            yield (
                f"{sizes[0]} and {sizes[1]} boots: the 5 in 100 hold only where both arms spread alike. With "
                "equal numbers of boots they hold nearly always (docs/bench-statistics.md)."
            )
        yield from _apart(a, b)
    for arm in (a, b):
        if len({(each.subject.fleet_id, each.subject.plan_sha256) for each in arm.parts}) > 1:
            yield f"Arm {arm.name} has boots of more than one plan: it is no single thing."
        failed = sum(s.failed for boot in arm.parts for point in boot.points.values() for s in point.samples)
        if failed:
            yield f"Arm {arm.name}: {failed} requests failed."
    yield from _machines(a, b)
    yield from a.notes
    yield from b.notes


def _apart(a: Arm, b: Arm) -> Iterator[str]:
    """A machine drifts: what was measured apart differs by the hour too."""
    first, second = ([boot.started for boot in arm.parts] for arm in (a, b))
    if max(first) < min(second) or max(second) < min(first):
        yield (
            "All boots of one arm were measured before the other's: what the machine did meanwhile is in the "
            "change. Take turns."
        )


def _machines(a: Arm, b: Arm) -> Iterator[str]:
    machines = (*a.machines, *b.machines)
    for key in sorted({key for machine in machines for key in machine} - {"load"}):
        values = {str(machine.get(key)) for machine in machines}
        if len(values) > 1:
            yield f"Not one machine: {key} is {' and '.join(sorted(values))}."
