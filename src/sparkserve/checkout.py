"""Where the checkout is, and where this program keeps state beside it."""

from __future__ import annotations

import os
from pathlib import Path

from sparkserve.errors import SparkserveError


def root() -> Path:
    """The checkout: `$SPARKSERVE_CHECKOUT` (the entry script sets it), else the nearest folder with a flake.

    Raises `HOST.SYSTEM` when there is none.
    """
    named = os.environ.get("SPARKSERVE_CHECKOUT")
    if named:
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "flake.nix").exists() and (folder / "hosts").is_dir():
            return folder
    raise SparkserveError(
        "HOST.SYSTEM",
        expected="a sparkserve checkout",
        found="no flake.nix with hosts/ here or above",
        where=str(here),
        do="Change into the checkout, or call its ./sparkserve.",
    )


def found() -> bool:
    """Whether there is one: a node has none."""
    try:
        root()
    except SparkserveError:
        return False
    return True


def state() -> Path:
    """The folder for locks, GC roots, logs and run files: `.sparkserve` in the checkout, made if missing."""
    folder = root() / ".sparkserve"
    folder.mkdir(exist_ok=True)
    return folder.resolve()  # the copy that a demo makes of a checkout has a link to it
