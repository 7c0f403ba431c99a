"""`sparkserve logs`: what the engine says."""

from __future__ import annotations

import sys

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve logs -n 200

    ./sparkserve logs -f

The log of the start before the last one lies beside it, with the suffix .1."""
)
@options.fleet
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C; survives a restart.")
@click.option(
    "-n", "--lines", default=50, show_default=True, type=click.IntRange(0), help="Lines to show first."
)
def command(fleet: str, follow: bool, lines: int) -> None:
    """Print the end of the engine's log to stdout."""
    from sparkserve.engine import log
    from sparkserve.errors import SparkserveError
    from sparkserve.local import several, single

    if several.exists(fleet):
        if follow:
            raise click.UsageError("--follow works on fleets of one node.")
        for node, printed in several.logs(fleet, lines).items():
            sys.stdout.writelines(f"{node}: {line}\n" for line in printed)
        return
    nodes = single.nodes(fleet)
    if not nodes:
        raise SparkserveError(
            "ENGINE.STATE",
            expected="a fleet that was started at least once",
            found="no log",
            where=fleet,
            do="Start it with: ./sparkserve up.",
        )
    path = nodes[0].log
    for line in log.follow(path, lines) if follow else log.last_lines(path, lines):
        sys.stdout.write(f"{line}\n")
        if follow:
            sys.stdout.flush()
