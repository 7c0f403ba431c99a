"""What needs a real host: root, Nix, namespaces, a port, a running engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.checks import _pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.checks import Outcome

title = "tests/host: the entry script, up and down, the openai client, bad input"
cost_s = 600
slow = False


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/host with the pinned pytest. Raises `NIX.BUILD`."""
    return _pytest.run("host", ["tests/host", "--ignore=tests/host/fleet"], detail)
