"""`pins check`: proves that the store has every pin, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.pins import model, store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.pins.model import Pin


def check(profiles: Sequence[str]) -> int:
    """Verify all pins of `profiles` against the store; return how many there are.

    Raises `PIN.HASH` when bytes in the store changed, else `PIN.MISSING`; both name every pin concerned; else
    `PIN.PROFILE` for the first pin whose size a list has wrong.
    """
    lists = [model.load(name) for name in profiles]
    files = {pin.path: pin.file for each in lists for pin in each.pins}
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
            f"then: ./sparkserve pins fetch {' '.join(profiles)}",
        )
    if absent:
        raise SparkserveError(
            "PIN.MISSING",
            expected=f"{len(files)} pins in the store",
            found=f"{len(absent)} missing: {lacking}",
            where=store.STORE,
            do=f"Run: ./sparkserve pins fetch {' '.join(profiles)}",
        )
    for each in lists:
        for pin in each.pins:
            if (size := size_in_store(pin)) != pin.size:
                raise SparkserveError(
                    "PIN.PROFILE",
                    expected=f"the size of {pin.file}, {size} bytes",
                    found=f"{pin.size}",
                    where=str(model.list_path(each.profile)),
                    do=f"Run: git restore nix/pins/{each.profile}.json, "
                    f"or: ./sparkserve pins lock {each.profile}.",
                )
    return len(files)


def size_in_store(pin: Pin) -> int:
    """The bytes of a pin's file, for a tree of its one program."""
    path = Path(pin.path)
    return (path / pin.name if pin.kind == "tree" else path).stat().st_size
