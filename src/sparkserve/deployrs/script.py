"""`deploy-rs-activate` of a host closure: deploy-rs activates by environment instead of words."""

from __future__ import annotations

import os
import sys

from sparkserve.errors import SparkserveError
from sparkserve.host import activate
from sparkserve.output import print_error

_USAGE = """Usage: deploy-rs-activate

Puts this host closure into effect, as bin/activate does. For deploy-rs.

  DRY_ACTIVATE=1  Say what would change, and change nothing.
"""


def main(closure: str, argv: list[str] | None = None) -> None:
    """Activate `closure`, or say with DRY_ACTIVATE=1 what that would change, and exit as bin/activate."""
    if words := sys.argv[1:] if argv is None else argv:
        helps = words[0] in ("-h", "--help")
        (sys.stdout if helps else sys.stderr).write(_USAGE)
        sys.exit(0 if helps else 2)
    if os.environ.get("BOOT") == "1":
        error = no_boot(closure)
        print_error(error, as_json=False)
        sys.exit(error.exit_code)
    activate.main(closure, "activate", ["--dry-run"] if os.environ.get("DRY_ACTIVATE") == "1" else [])


def no_boot(closure: str) -> SparkserveError:
    """The error for an activation at the next boot: nothing would carry it out then."""
    return SparkserveError(
        "CLI.USAGE",
        expected="an activation now",
        found="one at the next boot (--boot)",
        where=closure,
        do="Leave --boot out. A node that needs a reboot gets it by ./sparkserve deploy.",
    )
