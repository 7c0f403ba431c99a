"""Command lines of engines, taken apart by what a person would call one thing. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "the program"


def by_flag(words: Sequence[str]) -> dict[str, str]:
    """Arguments by flag: `--tp-size 3` is {"--tp-size": "3"}, and what is before all flags is `PROGRAM`'s.

    Words are as a shell takes them. A flag that comes again has those of each place, with itself between.
    """
    found: dict[str, list[str]] = {}
    flag = PROGRAM
    for word in words:
        if not word.startswith("--"):
            found.setdefault(flag, []).append(word)
            continue
        flag = word
        found[flag] = [*found[flag], flag] if flag in found else []
    return {flag: shlex.join(values) for flag, values in found.items()}
