"""What also those need of protocol.py who do without its models."""

from __future__ import annotations

VERSION = 3
LINE_BYTES = 256 * 1024


def key(number: int, state: str, phase: str | None, wanted: bool, reason: str) -> str:
    """Changes when something happened to the group that an operator waits for."""
    return f"{number}/{state}/{phase}/{wanted}/{reason[:80]}"
