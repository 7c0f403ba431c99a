"""The gates there are: every file of `kinds`. modules/gates.nix reads the same folder."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, cast

from sparkserve.gates import kinds

if TYPE_CHECKING:
    from sparkserve.gates.contract import Gate


def names() -> list[str]:
    """The names of all gates; none is imported."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(kinds.__path__) if m.name[0] != "_")


def load(name: str) -> Gate:
    """The gate of a name. Raises KeyError for one that is not there, and whatever its import raises."""
    if name not in names():
        raise KeyError(name)
    return cast("Gate", importlib.import_module(f"{kinds.__name__}.{name.replace('-', '_')}"))
