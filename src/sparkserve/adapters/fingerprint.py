"""Fingerprints of the places in SGLang that adapters rely on: sha256 of their source text.

The text is taken as it stands, comments included: SGLang is pinned, so it changes only with a pin, and then a
person looks. `fingerprints.json` is what the adapters were qualified on; its one writer is
`sparkserve adapters verify --update`. Run as a module it prints the fingerprints of the SGLang it finds.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve.adapters import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.adapters.contract import Declaration

FILE = Path(__file__).with_name("fingerprints.json")

# Where all ranks compare their adapters: the process group exists, and no collective ran.
MEETING = "sglang.srt.distributed.parallel_state.init_world_group"
# What the plugin itself relies on.
PLUGIN = (
    MEETING,
    "sglang.srt.distributed.parallel_state.init_distributed_environment",
    "sglang.srt.plugins.load_plugins",
    "sglang.srt.plugins.hook_registry.HookRegistry",
)


def targets(known: Mapping[str, Declaration]) -> dict[str, list[str]]:
    """Every target, with who relies on it."""
    users: dict[str, list[str]] = {target: ["plugin"] for target in PLUGIN}
    for name, declaration in known.items():
        for target in declaration.hooks.values():
            users.setdefault(target, []).append(name)
    return users


def recorded() -> dict[str, str]:
    """The fingerprints that the adapters were qualified on."""
    value: dict[str, str] = json.loads(FILE.read_text())["targets"]
    return value


def resolve(target: str) -> Any:
    """The object at a dotted path. Raises ImportError, AttributeError or ValueError."""
    return pkgutil.resolve_name(target)


def of(target: str) -> str:
    """The fingerprint of a target. Raises as `resolve`, and OSError or TypeError when it has no source."""
    return hashlib.sha256(inspect.getsource(resolve(target)).encode()).hexdigest()


def digest(value: Any) -> str:
    """sha256 of a JSON value in one canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _found() -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for target in targets(registry.declarations()):
        try:
            rows[target] = {"sha256": of(target)}
        except Exception as error:
            rows[target] = {"error": f"{type(error).__name__}: {error}"}
    return rows


if __name__ == "__main__":
    from importlib.metadata import version

    json.dump({"sglang": version("sglang"), "targets": _found()}, sys.stdout)
