"""`sparkserve gate`: does it answer well?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options
from sparkserve.errors import EXIT_CODES

if TYPE_CHECKING:
    from sparkserve.gates.evidence import Evidence
    from sparkserve.gates.subject import Target

_EVIDENCE = click.Path(path_type=Path)


def _names() -> list[str]:
    from sparkserve.gates import registry

    return registry.names()


@click.group(
    epilog="""Examples:

    ./sparkserve gate list

    ./sparkserve gate run --quick

    ./sparkserve gate run --against .sparkserve/evidence/before

    ./sparkserve gate compare old.json new.json

docs/gates.md says what each gate proves and what it cannot see."""
)
def command() -> None:
    """Ask what is served whether it answers well, and keep the evidence."""


@command.command(
    "run",
    epilog="""Examples:

    ./sparkserve gate run

    ./sparkserve gate run smoke determinism --quick --seed 7

    ./sparkserve gate run tscan --endpoint http://127.0.0.1:30000 --model my-model

    ./sparkserve gate run --quick --json | jq '.gates[] | {gate, passed, summary}'

Without names: the gates that the plan of the running fleet declares, in its order; one that cannot run has
failed. Each leaves an evidence file.

Exit code: 0 when all passed, 52 when nothing is ready to answer, 65 when a gate failed, 66 for a baseline
that is no evidence, 100 for a file without a key, 101 when the endpoint does not take it.""",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=options.complete(_names))
@options.fleet
@options.endpoint
@options.model
@options.api_key_file
@click.option("--quick", is_flag=True, help="Fewer and shorter requests.")
@click.option("--against", type=_EVIDENCE, help="Evidence to compare with, or a folder of it.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Repeat what was random in another run.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="The evidence's folder.")
@options.as_json
@click.pass_context
def run(
    context: click.Context,
    names: tuple[str, ...],
    fleet: str,
    endpoint: str | None,
    model: str | None,
    api_key_file: Path | None,
    quick: bool,
    against: Path | None,
    seed: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Run gates against what serves; exit 65 unless all pass."""
    import asyncio
    import secrets

    from sparkserve.gates import files, runner
    from sparkserve.output import print_json
    from sparkserve.terminal import console

    for name in names:
        if name not in _names():
            raise click.BadParameter(f"{name} is none of the gates {', '.join(_names())}", param_hint="NAME")
    target = _target(fleet, endpoint, model, api_key_file)
    chosen = list(dict.fromkeys(names or (target.plan.gates if target.plan else ())))
    if not chosen:
        raise click.UsageError("no plan declares gates for this: name those to run")
    seed = secrets.randbelow(2**31) if seed is None else seed
    baseline = files.baseline(against, chosen) if against else {}
    order = runner.Order(target.subject, quick, seed, target.plan, baseline, target.key_file)
    console.print(f"{target.subject.model} at {target.subject.endpoint}, seed {seed}")
    found = asyncio.run(runner.run(chosen, order, output or files.folder()))
    if as_json:
        print_json({"seed": seed, "gates": [_line(evidence, path) for evidence, path in found]})
    failed = [evidence.gate for evidence, _ in found if not evidence.passed]
    count = f"{len(found) - len(failed)} passed, {len(failed)} failed"
    console.print(f"{count}: evidence in {found[0][1].parent}")
    context.exit(EXIT_CODES["GATE.FAILED"] if failed else 0)


def _line(evidence: Evidence, path: Path) -> dict[str, Any]:
    """A gate in the output of `run`; its evidence file has all."""
    kept = {"gate", "passed", "ran", "summary", "seconds", "measured", "limits", "findings"}
    return {**evidence.model_dump(mode="json", include=kept), "evidence": str(path)}


def _target(fleet: str, endpoint: str | None, model: str | None, key_file: Path | None) -> Target:
    from sparkserve.gates import subject

    named = options.foreign(endpoint, model)
    return (
        subject.of_fleet(fleet, key_file) if named is None else subject.of_endpoint(*named, key_file=key_file)
    )


@command.command(
    "compare",
    epilog="""Example: ./sparkserve gate compare old.json new.json

Exit code: 0 when NEW passed, and the gate's own comparison if it has one; 65 else; 66 for a file that is no
evidence.""",
)
@click.argument("old", type=_EVIDENCE)
@click.argument("new", type=_EVIDENCE)
@options.as_json
@click.pass_context
def compare(context: click.Context, old: Path, new: Path, as_json: bool) -> None:
    """Show what changed between two evidence files of one gate."""
    from sparkserve.gates import compare as comparing
    from sparkserve.gates import files
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table

    found = comparing.two(files.read(old), files.read(new))
    if as_json:
        print_json(found)
    else:
        rows = [
            (f"{section}.{name}", _said(before), _said(after))
            for section in ("subject", "measured", "limits", "counters")
            for name, (before, after) in found[section].items()
        ]
        print_table(("value", "old", "new"), rows)
        for finding in found["findings"]:
            console.print(finding)
        if not found["comparable"]:
            console.print("Other things were asked: the numbers do not compare. Give both runs one --seed.")
        console.print(f"{'✓' if found['passed'] else '✗'} {found['gate']}: {found['summary']}")
    context.exit(0 if found["passed"] else EXIT_CODES["GATE.FAILED"])


def _said(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


@command.command("list", epilog="Example: ./sparkserve gate list --fleet tp4-ring")
@options.fleet
@options.as_json
def list_(fleet: str, as_json: bool) -> None:
    """Show the gates, and which of them the files of a fleet declare."""
    from sparkserve.fleet import plans
    from sparkserve.gates import registry
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    declared = plans.load(fleet)[0].gates
    rows: list[dict[str, Any]] = []
    for name in [*declared, *(name for name in registry.names() if name not in declared)]:
        gate = registry.load(name) if name in registry.names() else None
        rows.append(
            {
                "gate": name,
                "declared": name in declared,
                "title": gate.title if gate else "not in this version of sparkserve",
                "needs": gate.needs if gate else "",
                "cost_s": list(gate.cost_s) if gate else None,
            }
        )
    if as_json:
        print_json(rows)
        return
    print_table(
        ("gate", fleet, "quick, whole", "proves", "needs"),
        [
            (
                row["gate"], "declared" if row["declared"] else "-",
                "{} s, {} s".format(*row["cost_s"]) if row["cost_s"] else "-", row["title"], row["needs"],
            )
            for row in rows
        ],
    )  # fmt: skip
