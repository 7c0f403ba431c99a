"""`sparkserve generations`: what each node has, runs, and has kept."""

from __future__ import annotations

import click

from sparkserve.cli import garbage, options


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[gc]",
    epilog="""Examples:

    ./sparkserve generations

    ./sparkserve generations --json | jq '.[] | select(.current) | {node, fleet_id, state}'

States: kept, a deployment proved it and kept it; experimental, up put it there, or it was undone; foreign, it
is no closure of this node. A baseline is what was promoted; the newest one is desired.""",
)
@options.fleet
@options.as_json
@click.pass_context
def command(context: click.Context, fleet: str, as_json: bool) -> None:
    """Show the generations of all nodes: which is current, which were kept, which is desired."""
    if context.invoked_subcommand is not None:
        return
    from sparkserve.deploy import baseline, deployer, standing
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table

    baselines = baseline.known()
    found = deployer.generations(fleet)
    rows = standing.rows(found, fleet, baselines)
    if as_json:
        print_json(rows)
        return
    print_table(
        ("node", "generation", "state", "since", "baseline", "fleet id", "closure"),
        [
            (
                row["node"], f"{row['generation']}{' current' if row['current'] else ''}", row["state"],
                row["since"] or "-", f"{row['baseline'] or '-'}{' desired' if row['desired'] else ''}",
                (row["fleet_id"] or "-")[:12], row["path"],
            )
            for row in rows
        ],
    )  # fmt: skip
    for node, there in found.items():
        if (now := there.state.open) is not None:
            console.print(f"{node}: deployment {now.id} is open, by {now.deployer} since {now.since}.")
    console.print(standing.words(found, fleet, baselines))


command.add_command(garbage.command)
