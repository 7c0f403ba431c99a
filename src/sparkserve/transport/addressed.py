"""The last step of a host closure: store paths that depend on contents only.

Nix names a built path by its recipe, so two builders that make equal bytes have two paths. Rewritten to be
content-addressed they have one, and no signature is needed to copy it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import checkout, nix
from sparkserve.output import phase

if TYPE_CHECKING:
    from collections.abc import Sequence


def addressed(paths: Sequence[Path]) -> list[Path]:
    """The content-addressed twins of built `paths`, in order, with their closures in this machine's store.

    Rewriting reads and writes the whole closure (10 to 30 s for 2 GB on two cores), so the state folder keeps
    what was rewritten, with GC roots named like the paths. Raises `NIX.BUILD`.
    """
    state = checkout.state()
    record = state / "addressed.json"
    known = _known(record)
    todo = [path for path in paths if not _valid(known.get(str(path)))]
    if todo:
        with phase("Make the closure content-addressed") as detail:
            new = nix.rewrite(todo, on_line=lambda line: detail(line[:100]))
        known.update({str(path): str(twin) for path, twin in new.items()})
        part = record.with_suffix(".part")
        part.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
        part.replace(record)
    found = [Path(known[str(path)]) for path in paths]
    for twin in found:
        nix.keep(twin, state / "roots" / f"addressed-{twin.name.partition('-')[2]}")
    return found


def _known(record: Path) -> dict[str, str]:
    try:
        # What Nix collected meanwhile is dropped, so the record does not grow for ever.
        items = json.loads(record.read_text()).items()
        return {path: twin for path, twin in items if Path(path).exists() and _valid(twin)}
    except (OSError, ValueError):
        return {}


def _valid(twin: str | None) -> bool:
    return twin is not None and Path(twin).exists()
