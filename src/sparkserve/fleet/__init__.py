"""Fleets: the folders in hosts/, and the plans that Nix makes of them."""

from __future__ import annotations

import os

DEFAULT_FLEET = "local-triangle"
CHOSEN = "SPARKSERVE_FLEET"  # the environment variable with another default


def command(words: str, fleet: str) -> str:
    """How a user who reads this says `words` to sparkserve about `fleet`."""
    chosen = os.environ.get(CHOSEN) or DEFAULT_FLEET
    return f"./sparkserve {words}" + ("" if fleet == chosen else f" --fleet {fleet}")
