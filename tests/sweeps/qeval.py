"""Answers that are nearly right, against a run of an engine that knows all of them.

Which tasks are missed is the seed's. Code is left out: its sandboxes would take hours here.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import Mock

from sparkserve.gates import tasks

_QUICK = [task for task in tasks.load()[::3] if task.kind != "code"]
# The gate takes every third of what it loads.
PATCH = {"tasks": Mock(load=lambda: tuple(task for task in _QUICK for _ in range(3)))}
CLEAN: dict[str, object] = {"answers": {task.prompt: task.reference for task in _QUICK}}


def _missed(count: int) -> dict[str, Any]:
    missed = random.Random(count).sample(_QUICK, count)  # noqa: S311 - to be repeated
    return {"answers": {**CLEAN["answers"], **{task.prompt: task.wrong for task in missed}}}  # type: ignore[dict-item]


FAULTS = {
    "n tasks of 19 are nearly right only": [(f"{n}", _missed(n)) for n in (1, 2, 3)],
    "k of 100 tokens are garbled": [(f"{k}", {"garble": (k, 100)}) for k in (1, 2, 3, 5, 8)],
}
