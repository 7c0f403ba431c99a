"""Fleets: the folders in hosts/, and the plans that Nix makes of them."""

from __future__ import annotations

import os
import re

DEFAULT_FLEET = "local-triangle"
CHOSEN = "SPARKSERVE_FLEET"  # the environment variable with another default


def command(words: str, fleet: str) -> str:
    """How a user who reads this says `words` to sparkserve about `fleet`."""
    chosen = os.environ.get(CHOSEN) or DEFAULT_FLEET
    return f"./sparkserve {words}" + ("" if fleet == chosen else f" --fleet {fleet}")


def about(text: str, fleet: str) -> str:
    """`text` with each `./sparkserve WORD --FLAG` in it said as `command` says it."""
    return re.sub(r"\./sparkserve (\w+(?: --\w+)*)", lambda found: command(found[1], fleet), text)
