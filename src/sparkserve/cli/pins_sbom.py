"""`sparkserve pins sbom`: pins as a software bill of materials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    epilog="""Examples:

    ./sparkserve pins sbom > sparkserve.spdx.json

    ./sparkserve pins sbom base engine-gb10 > spark.spdx.json

Name, version, sha256 and package URL of each pin. Its date is that of the newest lock, and equal lists give
equal bytes. Licences are NOASSERTION: a pin list does not have them."""
)
@options.profiles
def command(profiles: Sequence[str]) -> None:
    """Print the pins of profiles (default: all) as SPDX 2.3 JSON."""
    from sparkserve.output import print_json
    from sparkserve.pins import model, sbom

    print_json(sbom.document([model.load(name) for name in sorted({*profiles} or model.known())]))
