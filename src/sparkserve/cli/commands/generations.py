"""`sparkserve generations`: what each node has, runs, and has kept."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve generations

    ./sparkserve generations --json | jq '.[] | select(.current) | {node, fleet_id, state}'

States: kept, a deployment proved it and kept it; experimental, up put it there, or it was undone; foreign, it
is no closure of this node."""
)
@options.fleet
@options.as_json
def command(fleet: str, as_json: bool) -> None:
    """Show the generations of all nodes: which is current, and which were kept."""
    from sparkserve.deploy import deployer
    from sparkserve.output import console, print_json, print_table

    found = deployer.generations(fleet)
    rows = [row for node, there in found.items() for row in there.rows(node)]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("node", "generation", "state", "since", "fleet id", "closure"),
        [
            (
                row["node"], f"{row['generation']}{' current' if row['current'] else ''}", row["state"],
                row["since"] or "-", (row["fleet_id"] or "-")[:12], row["path"],
            )
            for row in rows
        ],
    )  # fmt: skip
    for node, there in found.items():
        if (now := there.state.open) is not None:
            console.print(f"{node}: deployment {now.id} is open, by {now.deployer} since {now.since}.")
