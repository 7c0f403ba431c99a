"""A copy of the checkout with a fault in it, as the checkout of this process."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkserve import checkout
from sparkserve.fleet import names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.demo.faults import Fault

GATES = ("smoke",)  # of the copy: the others would pass over a fault, or find it later
_NAMED = "SPARKSERVE_CHECKOUT"
_FLEET = """# Made by ./sparkserve demo rollback.
{{ lib, ... }}: {{
  imports = [ ./own.nix ];
  gates = lib.mkForce [ {gates} ];
  # It would start a group that failed three times.
  group.startLimit = lib.mkForce 1;
  {options}
}}
"""


@contextmanager
def planted(fleet: str, fault: Fault) -> Iterator[None]:
    """While the body runs, the checkout is a copy of what git tracks, with `fault` in the closure of `fleet`.

    The state folder stays the same, and so do nodes, locks and histories.
    """
    state = checkout.state()
    copy = state / "demo/checkout"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        _copy(copy)
        _plant(copy, fleet, fault)
        with _as_checkout(copy):
            for argv in (["git", "init", "--quiet"], ["git", "add", "--all"]):
                names.git(argv)
            (copy / ".sparkserve").symlink_to(state)  # after that: Nix need not see it
            yield
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _copy(to: Path) -> None:
    source = checkout.root()
    for name in filter(None, names.git(["git", "ls-files", "-z"]).split("\0")):
        if os.path.lexists(source / name):  # else deleted, and not yet told to git
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, to / name, follow_symlinks=False)


def _plant(copy: Path, fleet: str, fault: Fault) -> None:
    with (copy / fault.file).open("a") as file:
        file.write(fault.code)
    own = copy / f"hosts/{fleet}/fleet.nix"
    own.rename(own.with_name("own.nix"))
    gates = " ".join(f'"{gate}"' for gate in GATES)
    own.write_text(_FLEET.format(gates=gates, options=fault.options))


@contextmanager
def _as_checkout(path: Path) -> Iterator[None]:
    before = os.environ.get(_NAMED)
    os.environ[_NAMED] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NAMED]
        else:
            os.environ[_NAMED] = before
