"""`sparkserve pins export`: pins in a folder, for a machine without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    epilog="""Examples:

    ./sparkserve pins export /media/usb/pins

    ./sparkserve pins export /media/usb/pins engine-gb10

The pins that the harness itself is built from are always with them. A run that was stopped goes on where it
was. docs/airgap.md says what to do on the other side."""
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@options.profiles
@options.as_json
def command(folder: Path, profiles: Sequence[str], as_json: bool) -> None:
    """Write the pins of profiles (default: all but those on request) as files with an index."""
    if folder == Path():  # as of a variable that is not set
        raise click.UsageError("DIR is empty; the folder that this is run in is named by its path")
    from sparkserve.output import print_json
    from sparkserve.pins import exporting, profile
    from sparkserve.terminal import console

    written = exporting.export(folder, profiles or profile.usual())
    if as_json:
        print_json({"files": written.files, "bytes": written.size, "copied_bytes": written.copied})
    else:
        size, copied = written.size / 1e6, written.copied / 1e6
        console.print(f"{written.files} files, {size:.1f} MB in {folder}; {copied:.1f} MB copied.")
