"""`sparkserve demo`: what sparkserve does about faults, shown on nodes of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options
from sparkserve.demo.faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(
    epilog="""Examples:

    ./sparkserve demo rollback

    ./sparkserve demo rollback --fault garbled"""
)
def command() -> None:
    """Show what becomes of a fault, with real ones."""


@command.command(
    epilog="Faults:\n\n"
    + "".join(f"    {name}: {fault.what}.\n\n" for name, fault in FAULTS.items())
    + """Examples:

    ./sparkserve demo rollback

    ./sparkserve demo rollback --fault garbled --fault dead

    ./sparkserve demo rollback --json | jq '.[] | {fault, caught, requests}'

Each fault is code in a copy of the checkout, so generation 2 is a closure of its own.

It takes one to three minutes a fault on two cores, and leaves the fleet up with generation 1.

How requests end: answered; refused, 503 with Retry-After; broken, with an error in the stream; untaken,
the connection was closed before anything came; lost, none of these, which must not happen.

Exit code: 60 when a fault was not caught, or something is not as it was before."""
)
@options.fleet
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice(list(FAULTS)),
    help="Only this one. Repeatable. Without it: all, in turn.",
)
@options.as_json
def rollback(fleet: str, faults: Sequence[str], as_json: bool) -> None:
    """Deploy a fault while clients ask: it is caught and undone, and no request is lost without a word."""
    from sparkserve.demo import rollback as demo
    from sparkserve.errors import SparkserveError
    from sparkserve.fleet import command as words
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    shown = demo.run(fleet, faults or FAULTS)
    if as_json:
        print_json([each.value() for each in shown])
    else:
        print_table(
            ("fault", "caught by", "seconds", "requests", "afterwards"),
            [
                (
                    each.fault,
                    each.caught or "nothing",
                    f"{each.seconds:.0f}",
                    ", ".join(f"{count} {end}" for end, count in each.requests.items() if count),
                    "; ".join(each.wrong) or "as before",
                )
                for each in shown
            ],
        )
    if wrong := [f"{each.fault}: {'; '.join(each.wrong)}" for each in shown if each.wrong]:
        raise SparkserveError(
            "CHECK.FAILED",
            expected="every fault caught, and all as before",
            found=" | ".join(wrong),
            where=fleet,
            do=f"To see what runs: {words('generations', fleet)}.",
        )
