"""How many samples a point needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def wanted(values: Sequence[float], least: int, most: int, precision: float) -> int:
    """The samples that make an interval of `precision` percent, from `least` to `most`."""
    return least
