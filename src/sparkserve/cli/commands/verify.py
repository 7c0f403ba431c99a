"""`sparkserve verify`: is everything still as the closure says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from sparkserve.drift.fleet import Drift


@click.command(
    epilog="""Examples:

    ./sparkserve verify --live

    ./sparkserve verify --live --deep --fleet local-single

    ./sparkserve verify --live --fleet tp3-triangle   # Sparks, over ssh

    ./sparkserve verify --live --json | jq -r '.nodes[].differences[] | "\\(.part) \\(.what)"'

    sparkserve verify --live --here              # on a node: this node alone

It changes nothing, and prints no secrets. Without --live the engine is left out, so that a group that is
stopped can be looked at. docs/drift.md says what is compared with what.

Exit code: 0 when all is as it should be, 98 otherwise."""
)
@options.fleet
@click.option("--live", is_flag=True, help="Also the engine that runs: its arguments, mounts, libraries.")
@click.option(
    "--deep", is_flag=True, help="Read every file of the closure, not only the store's record of it."
)
@click.option("--here", is_flag=True, help="This machine, by its own current generation.")
@options.as_json
@click.pass_context
def command(context: click.Context, fleet: str, live: bool, deep: bool, here: bool, as_json: bool) -> None:
    """Compare every node with its closure, and the nodes with each other."""
    from sparkserve.drift import fleet as drifts
    from sparkserve.errors import EXIT_CODES
    from sparkserve.output import print_json
    from sparkserve.terminal import phase

    if here and context.get_parameter_source("fleet") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("either --fleet or --here")
    with phase("Read every file of the closure" if deep else "Look at the nodes"):
        found = drifts.here(live=live, deep=deep) if here else drifts.of_fleet(fleet, live=live, deep=deep)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    if found.differs:
        context.exit(EXIT_CODES["VERIFY.DRIFT"])


def _print(found: Drift) -> None:
    from sparkserve.terminal import console, print_table

    rows = [(node, each.part, each.what, each.expected, each.found) for node, each in found.rows]
    if rows:
        print_table(("node", "part", "what", "expected", "found"), rows)
    if found.between:
        click.echo()
        names = list(found.reports)
        shared = [(each.what, *(each.values[name] for name in names)) for each in found.between]
        print_table(("not the same on all nodes", *names), shared)
    for name, report in found.reports.items():
        counts = ", ".join(f"{part} {count}" for part, count in report.checked.items() if count)
        generation = "" if report.generation is None else f"generation {report.generation}, "
        console.print(f"{name}: {generation}fleet id {report.fleet_id[:12]}; looked at: {counts}")
        if report.compiled:
            console.print(f"{name}: {len(report.compiled)} files that run were compiled there")
    if not found.differs:
        console.print("Nothing differs.")
