"""The last step of a host closure: store paths that depend on contents only.

Nix names a built path by its recipe, so two builders that make equal bytes have two paths. Made
content-addressed they have one.

Nix's own command for this (`nix store make-content-addressed`; that of 2.8 makes the same paths) reads and
hashes the whole closure each time: 13 s for 2 GB when an edit has changed 2 MB. Here, what did not change
costs nothing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import checkout, nix
from sparkserve.errors import SparkserveError
from sparkserve.pins import store
from sparkserve.terminal import phase
from sparkserve.transport.rewrite import name_of, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def addressed(paths: Sequence[Path]) -> list[Path]:
    """The content-addressed twins of built `paths`, in order, with their closures in this machine's store.

    The state folder keeps which path has which twin, and GC roots named like `paths`. Raises `NIX.BUILD`.
    """
    state = checkout.state()
    record = state / "addressed.json"
    twins = _known(record)
    if any(str(path) not in twins for path in paths):
        with phase("Make the closure content-addressed") as detail:
            _make(nix.closure(paths), twins, detail)
        part = record.with_suffix(".part")
        part.write_text(json.dumps(twins, indent=2, sort_keys=True) + "\n")
        part.replace(record)
    found = [Path(twins[str(path)]) for path in paths]
    for twin in found:
        nix.keep(twin, state / "roots" / f"addressed-{twin.name.partition('-')[2]}")
    return found


def _make(closure: dict[str, nix.Registered], twins: dict[str, str], detail: Callable[[str], None]) -> None:
    """Put the twin of every path of `closure`, in its order, into the store and into `twins`."""
    with tempfile.TemporaryDirectory(dir=checkout.state()) as folder:
        cache = Path(folder)
        (cache / "nix-cache-info").write_text(f"StoreDir: {store.STORE}\n")
        made = []
        for path, (sha256, _, references) in closure.items():
            if path in twins:
                continue
            detail(name_of(path))
            if not references:
                twins[path] = _add(path, sha256)
                continue
            others = {each: twins[each] for each in references if each != path}
            twin = rewrite(path, nix.dump(path), others, itself=path in references)
            (cache / f"{twin.hash}.nar").write_bytes(twin.nar)
            (cache / f"{twin.hash}.narinfo").write_text(twin.narinfo)
            twins[path] = twin.path
            made.append(twin.path)
        if made:
            nix.take(made, cache)


def _add(path: str, sha256: str) -> str:
    """The twin of a path that refers to nothing: the same bytes, so it need not be read to be known."""
    twin = store.fixed_path(name_of(path), sha256, recursive=True)
    if store.missing([twin]) and nix.add(path, name_of(path)) != twin:
        raise SparkserveError(
            "NIX.BUILD",
            expected="the contents that Nix has built",
            found="other ones",
            where=path,
            do=f"Delete it and build again: ./sparkserve nix store delete {path}, then ./sparkserve up.",
        )
    return twin


def _known(record: Path) -> dict[str, str]:
    try:
        known: dict[str, str] = json.loads(record.read_text())
    except (OSError, ValueError):
        return {}
    # What Nix collected meanwhile is dropped, so the record does not grow for ever.
    gone = store.missing([*known, *known.values()])
    return {path: twin for path, twin in known.items() if not {path, twin} & gone}
