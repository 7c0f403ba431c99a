"""`sparkserve pins import`: pins out of a folder, without a network."""

from __future__ import annotations

from pathlib import Path

import click

from sparkserve.cli import options


@click.command(
    epilog="""Example:  ./sparkserve pins import /media/usb/pins

A machine where nothing is built yet takes what it needs for that out of the same folder. Exit code 20 when
files are missing, 21 when some are damaged; what was right is in the store by then. docs/airgap.md has all
steps."""
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@options.as_json
def command(folder: Path, as_json: bool) -> None:
    """Add to the store what it lacks of a folder of `pins export`."""
    from sparkserve.output import print_json
    from sparkserve.pins import importing
    from sparkserve.terminal import console

    taken = importing.take(folder)
    if as_json:
        print_json({"pins": taken.pins, "added_bytes": taken.added})
    else:
        console.print(f"All {taken.pins} pins are in the store; {taken.added / 1e6:.1f} MB added.")
