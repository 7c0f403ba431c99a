"""`pins check`: proves that the store has every pin, unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.pins import model, store

if TYPE_CHECKING:
    from collections.abc import Sequence


def check(profiles: Sequence[str]) -> int:
    """Verify all pins of `profiles` against the store; return how many there are.

    Raises `PIN.HASH` when bytes in the store changed, else `PIN.MISSING`; both name every pin concerned.
    """
    files = {pin.path: pin.file for name in profiles for pin in model.load(name).pins}
    absent = store.missing(files)
    bad = store.damaged(sorted(files.keys() - absent))
    lacking = ", ".join(sorted(files[path] for path in absent))
    if bad:
        more = f"; missing as well: {lacking}" if absent else ""
        raise SparkserveError(
            "PIN.HASH",
            expected=f"{len(files)} pins with the bytes that were locked",
            found=f"{len(bad)} damaged: {', '.join(sorted(bad))}{more}",
            where=store.STORE,
            do="Remove each with: ./sparkserve nix store delete --ignore-liveness PATH; "
            "then: ./sparkserve pins fetch",
        )
    if absent:
        raise SparkserveError(
            "PIN.MISSING",
            expected=f"{len(files)} pins in the store",
            found=f"{len(absent)} missing: {lacking}",
            where=store.STORE,
            do=f"Run: ./sparkserve pins fetch {' '.join(profiles)}",
        )
    return len(files)
