"""The adapters there are: every folder of this package with an `adapter.toml`."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sparkserve import adapters
from sparkserve.adapters.contract import EXACTNESS, Adapter, Declaration, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType


def declarations(package: ModuleType = adapters) -> dict[str, Declaration]:
    """All declarations by name. Raises TypeError, ValueError or KeyError for one that is not in form."""
    files = sorted(Path(package.__path__[0]).glob("*/adapter.toml"))
    found = (_read(file) for file in files)
    return {each.name: each for each in found}


def code(name: str, package: ModuleType = adapters) -> type[Adapter]:
    """The class of an adapter. Raises whatever its import raises."""
    module = importlib.import_module(f"{package.__name__}.{name.replace('-', '_')}")
    return cast("type[Adapter]", module.Adapter)


def conflicts(names: list[str], known: Mapping[str, Declaration]) -> list[tuple[str, str]]:
    """Pairs of `names` that exclude each other: one says so, or both are put around the same target."""
    return [
        (one, other)
        for i, one in enumerate(names)
        for other in names[i + 1 :]
        if other in known[one].conflicts
        or one in known[other].conflicts
        or set(known[one].hooks.values()) & set(known[other].hooks.values())
    ]


def _read(file: Path) -> Declaration:
    value = tomllib.loads(file.read_text())
    if value["exactness"] not in EXACTNESS:
        raise ValueError(f"{file}: exactness is one of {', '.join(EXACTNESS)}")
    settings = {name: Setting(**each) for name, each in value.pop("settings", {}).items()}
    conflicts = tuple(value.pop("conflicts"))
    name = file.parent.name.replace("_", "-")
    return Declaration(name=name, settings=settings, conflicts=conflicts, **value)
