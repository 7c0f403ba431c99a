"""The logs of the last boots on a node: LOGS/boot-<number>/rank.log."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEEP = 10


def make(logs: Path, number: int) -> Path:
    """The folder for boot `number`, made empty; only the last boots before it stay."""
    folder = file(logs, number).parent
    shutil.rmtree(folder, ignore_errors=True)
    old = numbers(logs)
    for each in old[: max(0, len(old) - KEEP + 1)]:
        shutil.rmtree(file(logs, each).parent, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def file(logs: Path, number: int) -> Path:
    """The log of boot `number`."""
    return logs / f"boot-{number}" / "rank.log"


def numbers(logs: Path) -> list[int]:
    """The boots that have a folder, in order."""
    return sorted(int(each.name.removeprefix("boot-")) for each in logs.glob("boot-*"))
