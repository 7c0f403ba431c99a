"""`sparkserve down`: stop what `up` started."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve down

Running requests get up to 30 s to finish. It also cleans up after an engine that was killed or crashed."""
)
@options.fleet
def command(fleet: str) -> None:
    """Stop the fleet; nothing is left running. Exit 0 also when nothing ran."""
    from sparkserve.local import fleets
    from sparkserve.terminal import console

    if not fleets.take_down(fleet):
        console.print(f"{fleet} does not run.")
