"""A laptop fleet for unit tests: the golden plans, and names whose tag is known."""

from __future__ import annotations

from pathlib import Path

from sparkserve import plan
from sparkserve.local.names import Names

GOLDEN = Path(__file__).parents[1] / "golden/local-triangle"
PLANS = [plan.load(file) for file in sorted(GOLDEN.glob("*.json"))]
NAMES = Names("desk", Path("/state/local/desk"))
TAG = NAMES.tag
