"""`sparkserve pins audit`: pins that advisories are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.pins.audit import Audit


@click.command(
    epilog="""Examples:

    ./sparkserve pins audit ~/osv/PyPI.zip

    ./sparkserve pins audit ~/osv engine-gb10 --json

FILE has records in the format of OSV: a JSON file with one or a list, or a folder or zip of such files, as
the databases of OSV are published. Nothing is downloaded. Debian's records are about sources, which a package
in the store names.

Exit code: 0 when no pin is affected, 27 when one is, or when a record cannot tell; 28 when FILE holds no
record for any of the pins."""
)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, path_type=Path))
@options.profiles
@options.as_json
@click.pass_context
def command(context: click.Context, file: Path, profiles: Sequence[str], as_json: bool) -> None:
    """Match the pins of profiles (default: all) with the advisories of a file."""
    from sparkserve.errors import EXIT_CODES
    from sparkserve.output import print_json
    from sparkserve.pins import audit, model

    found = audit.audit([model.load(name) for name in sorted({*profiles} or model.known())], file)
    if as_json:
        affected = [each.as_dict() for each in found.findings]
        print_json({"affected": affected, "records": found.records, "sourceless": found.sourceless})
    else:
        _print(found)
    if found.findings:
        context.exit(EXIT_CODES["PIN.AFFECTED"])


def _print(found: Audit) -> None:
    from sparkserve.terminal import console, print_table

    rows = [
        (
            each.pin,
            ", ".join(each.profiles),
            " ".join([each.advisory, *each.aliases]),
            ", ".join(each.fixed) or "no version named",
            each.summary if each.certain else f"the record cannot tell for this version: {each.summary}",
        )
        for each in found.findings
    ]
    if rows:
        print_table(("Pin", "Profiles", "Advisory", "Fixed in", "What"), rows)
    for ecosystem, count in found.records.items():
        console.print(
            f"{count} records for {ecosystem}" if count else f"No record for {ecosystem}: not audited."
        )
    if found.sourceless:
        count = len(found.sourceless)
        console.print(
            f"{count} Debian packages are not in the store: by their own names, not their sources'."
        )
    pins = len({each.pin for each in found.findings})
    console.print(f"{pins} pins are affected." if pins else "No pin is affected by these records.")
