"""`sparkserve logs`: what the engine says."""

from __future__ import annotations

import sys
from typing import Literal

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve logs -n 200

    ./sparkserve logs -f

    ./sparkserve logs --node spark-1 --part supervisor

    ./sparkserve logs --fleet tp3-triangle -n 5  # of Sparks, over ssh

Of several nodes each line begins with its node. Parts beside the engine, on nodes: the supervisor (why a boot
ended) and the head's front (each request). The log of the start before the last one lies beside it, with the
suffix .1; on a node, those of the last ten boots are in /var/log/sparkserve. Nodes of this machine that are
off have left the end of their last log here. Exit code: 71 when a node does not answer, after the lines of
the others."""
)
@options.fleet
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C; survives a restart.")
@click.option(
    "-n", "--lines", default=50, show_default=True, type=click.IntRange(0), help="Lines to show first."
)
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option(
    "--part",
    default="engine",
    show_default=True,
    type=click.Choice(["engine", "supervisor", "front"]),
    help="Whose log.",
)
def command(
    fleet: str, follow: bool, lines: int, node: str | None, part: Literal["engine", "supervisor", "front"]
) -> None:
    """Print the end of the engine's log to stdout."""
    from contextlib import closing

    from sparkserve.local import fleets

    with closing(fleets.with_logs(fleet).logs(lines, follow=follow, part=part, node=node)) as found:
        for line in found:
            sys.stdout.write(f"{line}\n")
            if follow:
                sys.stdout.flush()
