"""Values of this checkout's Nix code, without a flake: a call takes 40 ms and as much for each fleet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sparkserve import nix

ROOT = Path(__file__).parents[2]


def fleets(hosts: Path) -> str:
    """The Nix expression of the fleets in the folder `hosts`."""
    return (
        f"(import {ROOT}/nix/fleet.nix {{ lib = import {ROOT}/nix/lib; "
        f"modules = {ROOT}/modules; hosts = {hosts}; }})"
    )


def value(expression: str) -> Any:
    """What an expression is. Raises the error that our Nix code threw."""
    argv = ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression]
    done = subprocess.run(argv, env=nix.environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise nix.error(done.stderr, "NIX.EVAL", "a test")
    return json.loads(done.stdout)


def plans(hosts: Path) -> dict[str, dict[str, Any]]:
    """The plans of all fleets in a folder: by fleet, then by node. Raises as `value` does."""
    found: dict[str, dict[str, Any]] = value(f"builtins.mapAttrs (_: fleet: fleet.plans) {fleets(hosts)}")
    return found
