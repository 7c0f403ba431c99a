"""The smallest fault that each gate catches, and its false alarms: `sweep_gates.py [GATE...]`.

For each gate with a table in tests/sweeps, quick as it is: clean engines of `--clean` seeds, and each
strength of each fault with `--seeds` seeds, the weakest first, up to one that is caught in 95 % of them. A
seed is the engine's and the gate's. Writes docs/results/gates.json, keeping gates that were not named, and
the table of docs/gates.md between its marks.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import pkgutil
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import scripted  # noqa: E402
import sweeps  # noqa: E402

from sparkserve.client.client import Client  # noqa: E402
from sparkserve.gates import compare, registry  # noqa: E402
from sparkserve.gates.contract import CannotRunError, Context  # noqa: E402

if TYPE_CHECKING:
    from sparkserve.gates.contract import Outcome

RESULT = ROOT / "docs/results/gates.json"
PAGE = ROOT / "docs/gates.md"
MARKS = "<!-- sweep -->\n", "<!-- end of sweep -->\n"
CAUGHT = 0.95

Verdict = Literal["passed", "failed", "no verdict"]


def table(gate: str) -> Any:
    """The module that says what a gate is tried with."""
    return importlib.import_module(f"sweeps.{gate.replace('-', '_')}")


def outcome(gate: str, seed: int, fields: dict[str, Any]) -> Outcome | None:
    """What the quick gate finds of one engine; None when it has no verdict."""

    async def run(endpoint: str) -> Outcome | None:
        async with Client(endpoint) as client:
            try:
                return await registry.load(gate).run(Context(client, "scripted", True, seed))
            except CannotRunError:
                return None

    module, changed = registry.load(gate), getattr(table(gate), "PATCH", {})
    script = scripted.Script(**{**table(gate).CLEAN, "seed": seed, **fields})
    with patch.multiple(module, **changed) if changed else patch.dict({}), scripted.serve(script) as endpoint:
        return asyncio.run(run(endpoint))


@cache
def baseline(gate: str, seed: int) -> Outcome | None:
    """A clean engine, for the gates whose verdict needs two runs."""
    return outcome(gate, seed, {})


def verdict(gate: str, seed: int, fields: dict[str, Any]) -> Verdict:
    """What the quick gate says of one engine. One without a verdict fails the gate, as the runner does."""
    found, judge = outcome(gate, seed, fields), compare.own(registry.load(gate))
    if found is not None and judge is not None:
        two: list[Any] = [
            SimpleNamespace(quick=True, prompts=each.prompts, details=each.details)
            for each in (baseline(gate, seed), found)
            if each is not None
        ]
        try:
            found = judge(*two)
        except CannotRunError:
            found = None
    return "no verdict" if found is None else "passed" if found.passed else "failed"


def sweep(gate: str, seeds: int, clean: int) -> dict[str, Any]:
    """All of one gate."""
    print(f"{gate}: clean", flush=True)
    alarms = sum(verdict(gate, seed, {}) != "passed" for seed in range(clean))
    faults = {}
    for fault, strengths in table(gate).FAULTS.items():
        tried: list[tuple[str, float]] = []
        for label, fields in strengths:
            caught = sum(verdict(gate, 1000 + seed, fields) != "passed" for seed in range(seeds))
            tried.append((label, caught / seeds))
            print(f"{gate}: {fault}: {label}: {caught} of {seeds}", flush=True)
            if caught / seeds >= CAUGHT:
                break
        faults[fault] = {"smallest": tried[-1][0] if tried[-1][1] >= CAUGHT else None, "caught": tried}
    return {"clean": clean, "false_alarms": alarms, "seeds": seeds, "faults": faults}


def page(results: dict[str, Any]) -> str:
    """The table of docs/gates.md."""
    lines = ["| gate | fault | smallest caught | next weaker | false alarms |", "|---|---|---|---|---|"]
    for gate, found in sorted(results.items()):
        for fault, each in sorted(found["faults"].items()):
            shown = [f"{label} ({share:.0%})" for label, share in each["caught"]]
            at = shown.pop() if each["smallest"] is not None else "none of these"
            alarms = f"{found['false_alarms']} of {found['clean']}"
            lines.append(f"| {gate} | {fault} | {at} | {shown[-1] if shown else '-'} | {alarms} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Sweep, and write what was found."""
    tables = [module.name.replace("_", "-") for module in pkgutil.iter_modules(sweeps.__path__)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gates", nargs="*", help=", ".join(tables))
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--clean", type=int, default=200)
    given = parser.parse_args()
    results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for gate in given.gates or tables:
        results[gate] = sweep(gate, given.seeds, given.clean)
        RESULT.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + page(results) + MARKS[1] + rest.partition(MARKS[1])[2])


if __name__ == "__main__":
    main()
