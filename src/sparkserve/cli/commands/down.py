"""`sparkserve down`: stop what `up` started, or what `deploy` did."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve down

    ./sparkserve down --fleet tp3-triangle       # Sparks stay on

Running requests get up to 30 s to finish. It also cleans up after an engine that was killed or crashed.

Nodes on this machine are powered off. Sparks are not: the units that serve are stopped on all that answer,
and the group stays down over a reboot if its controller was there to be told; deploy --apply starts it again.
No Spark has run this yet.

Exit code: 0 when nothing runs any more, 52 when a node is of another fleet, 71 when a Spark does not answer
(the others are stopped), 91 while a deployment is open on Sparks."""
)
@options.fleet
def command(fleet: str) -> None:
    """Stop the fleet; nothing is left running. Exit 0 also when nothing ran."""
    from sparkserve.local import fleets
    from sparkserve.terminal import console

    if not fleets.take_down(fleet):
        console.print(f"{fleet} does not run.")
