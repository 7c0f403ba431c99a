"""Two evidence files of one gate: what changed, and the gate's own verdict over both if it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sparkserve.errors import SparkserveError
from sparkserve.gates import registry
from sparkserve.gates.contract import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.gates.contract import Gate, Outcome
    from sparkserve.gates.evidence import Evidence


def own(gate: Gate) -> Callable[[Evidence, Evidence], Outcome] | None:
    """The gate's `compare(old, new)`, for those whose verdict needs two runs."""
    return cast("Callable[[Evidence, Evidence], Outcome] | None", getattr(gate, "compare", None))


def judged(gate: Gate, old: Evidence | None, new: Evidence) -> Evidence:
    """`new` with the gate's verdict over both in it. A gate without one, or without `old`, stays as it is."""
    compare = own(gate)
    if old is None or compare is None:
        return new
    both = compare(old, new)
    return new.model_copy(
        update={
            "passed": new.passed and both.passed,
            "summary": f"{new.summary}; {both.summary}",
            "measured": new.measured | both.measured,
            "limits": new.limits | both.limits,
            "findings": new.findings + both.findings,
        }
    )


def two(old: Evidence, new: Evidence) -> dict[str, Any]:
    """What changed from `old` to `new`, as `gate compare --json` prints it.

    `comparable` is False when other things were asked. `passed` is the gate's own verdict over both, or that
    of `new`. Raises `GATE.EVIDENCE` for two gates' evidence.
    """
    if old.gate != new.gate:
        raise SparkserveError(
            "GATE.EVIDENCE",
            expected="two evidence files of one gate",
            found=f"{old.gate} and {new.gate}",
            where="gate compare",
            do="Name an older and a newer file of the same gate.",
        )
    compare = own(registry.load(new.gate)) if new.gate in registry.names() else None
    try:
        verdict = compare(old, new) if compare and old.ran and new.ran else None
    except CannotRunError as error:
        raise SparkserveError(
            "GATE.EVIDENCE",
            expected="two evidence files that compare",
            found=str(error),
            where=f"gate {new.gate}",
            do="Run the gate again as the older one was: the same --seed, and --quick for both or neither.",
        ) from None
    return {
        "gate": new.gate,
        "passed": new.passed and (verdict is None or verdict.passed),
        "summary": verdict.summary if verdict else new.summary,
        "findings": list(verdict.findings if verdict else new.findings),
        "comparable": bool(new.prompts) and old.prompts == new.prompts,
        "subject": _changed(old.subject.model_dump(), new.subject.model_dump()),
        "measured": _changed(old.measured | _state(old), new.measured | _state(new)),
        "limits": _changed(old.limits, new.limits),
        "counters": _changed(old.counters, new.counters),
        "verdict": verdict and {"measured": verdict.measured, "limits": verdict.limits},
    }


def _state(evidence: Evidence) -> dict[str, Any]:
    return {name: getattr(evidence, name) for name in ("passed", "ran", "quick", "seed", "seconds")}


def _changed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[Any]]:
    """By name the value before and after, of what is not the same."""
    names = list(dict.fromkeys([*old, *new]))
    return {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
