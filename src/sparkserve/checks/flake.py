"""`nix flake check` with the network cut: the sealed outputs need none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import nix
from sparkserve.checks import Outcome, _command

if TYPE_CHECKING:
    from collections.abc import Callable

title = "nix flake check with the network cut: lint, types, unit tests, the quick gates in the sandbox"
cost_s = 480
slow = False

LOG_LINES = 25


def run(detail: Callable[[str], None]) -> Outcome:
    """Build every check of the flake; one that is built already counts as passed. Raises `NIX.EVAL`."""
    from sparkserve.pins import fetch, profile

    fetch.fetch(profile.usual(), (), None)
    checks: dict[str, str] = nix.eval_json("checks.x86_64-linux")
    detail(", ".join(checks))
    # A network namespace of its own has not even a loopback device up.
    argv = ["unshare", "--net", "nix", "flake", "check", "--keep-going", "--print-build-logs"]
    code, lines = _command.run("flake", [*argv, nix.flake()], env=nix.environment(), detail=detail)
    failed = [name for name, path in checks.items() if not Path(path).exists()]
    failures = [f"{name}: {_story(checks[name], lines)}" for name in failed]
    if code != 0 and not failed:
        failures = ["nix flake check: " + "\n".join(lines[-LOG_LINES:])]
    return Outcome(len(checks) - len(failed), failures)


def _story(path: str, lines: list[str]) -> str:
    """The end of what the check's builder printed; else of all output, for a check that was never reached."""
    name = re.sub(r"^[^-]*-", "", Path(path).name)
    own = [line for line in lines if line.startswith(f"{name}> ")]
    return "\n".join((own or lines)[-LOG_LINES:])
