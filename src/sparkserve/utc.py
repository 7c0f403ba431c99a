"""The time as records tell it."""

from __future__ import annotations

import time


def now() -> str:
    """UTC to the second: 2026-01-31T12:00:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
