"""The logs of the last boots on a node: LOGS/boot-<number>/rank.log."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEEP = 10


def make(logs: Path, number: int) -> Path:
    """The folder for boot `number`, made empty; only the last boots before it stay."""
    folder = logs / f"boot-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    old = sorted(logs.glob("boot-*"), key=lambda each: int(each.name.removeprefix("boot-")))
    for each in old[: max(0, len(old) - KEEP + 1)]:
        shutil.rmtree(each, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
