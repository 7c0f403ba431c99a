"""The modes: a file each, whose `tasks(settings, asker)` gives the points that it measures."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.task import Task


async def tasks(settings: Settings, asker: Asker) -> list[Task]:
    """What `settings.mode` measures. Raises `BENCH.REQUEST` when the endpoint cannot take any of it."""
    module = importlib.import_module(f"{__name__}.{settings.mode}")
    return cast("list[Task]", await module.tasks(settings, asker))
