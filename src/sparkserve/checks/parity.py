"""Our part of the module system gives the values that the real nixpkgs.lib gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.checks import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

title = "nix/lib equals nixpkgs.lib on every case; with NIXPKGS_LIB=<dir> against that lib, live"
cost_s = 5
slow = False


def run(detail: Callable[[str], None]) -> Outcome:
    """Compare with the committed values, and with the library in `$NIXPKGS_LIB` if that is set."""
    from sparkserve import parity

    library = os.environ.get("NIXPKGS_LIB")
    detail(library or "committed values")
    return Outcome(*parity.run(Path(library) if library else None))
