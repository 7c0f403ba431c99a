"""Several nodes on this machine: systemd, cables, faults, transport, SGLang over them, the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.checks import _pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.checks import Outcome

title = "tests/host/fleet: three nodes, their faults, closures copied to them, SGLang over them, the front"
cost_s = 3200
slow = True


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/host/fleet with the pinned pytest. Raises `NIX.BUILD`."""
    return _pytest.run("fleet", ["tests/host/fleet"], detail)
