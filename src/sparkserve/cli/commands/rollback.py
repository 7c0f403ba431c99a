"""`sparkserve rollback`: back to a generation that was kept."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve rollback

    ./sparkserve rollback --apply

    ./sparkserve rollback --to 3 --apply

    ./sparkserve rollback --to r7 --apply        # a baseline: ./sparkserve baselines list

Without --to: to what was kept last and does not run. It is a deployment without copy and gates: if the old
generation does not come up, all nodes return to what they have now.

Exit code: as of deploy; 99 when there is nothing to go back to.""",
)
@options.fleet
@click.option(
    "--to",
    metavar="N|PATH|BASELINE",
    help="A kept generation of the head, by number, closure or baseline: see generations.",
)
@click.option("--apply", "apply_", is_flag=True, help="Do it. Without it nothing changes.")
@options.as_json
def command(fleet: str, to: str | None, apply_: bool, as_json: bool) -> None:
    """Return all nodes to an earlier generation that was kept."""
    from sparkserve.cli import deployed
    from sparkserve.deploy import baseline, deployer

    target = None if to is None else baseline.closure(to, fleet)
    made = deployer.roll_back(
        fleet, target, apply=apply_, show=lambda plan: deployed.show(plan, as_json=as_json)
    )
    deployed.done(made, "rollback", apply=apply_, as_json=as_json)
