"""`sparkserve promote`: makes what runs the fleet's newest baseline."""

from __future__ import annotations

from pathlib import Path

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve promote first --why "the first that passes qeval whole"

    ./sparkserve promote r7 --why "+5 % at 8 streams" --bench r7-a.json --bench r7-b.json

    ./sparkserve promote r7 --why "new driver" --evidence evidence/r7 --json | jq .warnings

It writes manifests/baselines/DATE-NAME.json, which you commit, and each node keeps its closure from then on.
All nodes must run one generation that a deployment has kept; every gate that the plan declares needs evidence
of its fleet id that passed. Otherwise nothing is written.

Exit code: 65 a gate failed, 66 evidence is missing, 80 a bench result of something else, 91 a deployment is
open, 97 the nodes do not run one kept generation, 102 the name is taken."""
)
@click.argument("name", metavar="NAME")
@options.fleet
@click.option("--why", required=True, metavar="TEXT", help="The reason, for those who read it in a year.")
@click.option(
    "--evidence",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of the gates' evidence. Default: where they leave it.",
)
@click.option(
    "--bench",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RESULT.json",
    help="A result of sparkserve bench; may be given several times.",
)
@options.as_json
def command(
    name: str, fleet: str, why: str, evidence: Path | None, bench: tuple[Path, ...], as_json: bool
) -> None:
    """Make what all nodes run the newest baseline NAME, with what proves it."""
    from sparkserve.deploy import promote
    from sparkserve.output import print_json
    from sparkserve.terminal import console

    if not why.strip():
        raise click.BadParameter("a reason in words", param_hint="--why")
    made, path = promote.promote(fleet, promote.Wish(name, why.strip(), evidence, bench))
    if as_json:
        print_json(made.model_dump(mode="json"))
    for warning in made.warnings:
        console.print(f"! {warning}")
    console.print(f"Promoted: {fleet} is to run the fleet id {made.fleet_id[:12]}. Commit {path}.")
