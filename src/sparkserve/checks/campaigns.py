"""What bench compare is worth: campaigns of many boots, simulated and on a scripted engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.checks import _pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.checks import Outcome

title = "tests/campaigns: false alarms, power and coverage of bench compare, by simulated and scripted boots"
cost_s = 400
slow = True


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/campaigns with the pinned pytest. Raises `NIX.BUILD`."""
    return _pytest.run("campaigns", ["tests/campaigns"], detail)
