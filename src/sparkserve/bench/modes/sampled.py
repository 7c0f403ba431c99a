"""Sampled: the same waves at temperature 1.0 and top_p 0.95 with fixed seeds, at least 32 requests a point.

What is accepted of drafts at temperature 0 says little about it at 1.0. The cases are named `sampled-CASE`:
a point of decode and one of this mode are never the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench.modes import decode

if TYPE_CHECKING:
    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.task import Task


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """Every case at every number of streams."""
    return [
        decode.point(settings, asker, case, streams, sampled=True)
        for case in settings.cases
        for streams in settings.streams
    ]
