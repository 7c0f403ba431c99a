"""The folder in which pins travel to a machine without a network: `index.json`, and `files/` beside it.

The index is written last and names no time and no machine: of equal pin lists all exports are equal. What a
file must be is in it only for those who carry the folder; an import asks the checkout's own pin lists.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from sparkserve import given
from sparkserve.errors import SparkserveError
from sparkserve.pins import BUILDER
from sparkserve.pins.model import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INDEX = "index.json"
FILES = "files"
PARTIAL = ".partial"
_BLOCK = 1 << 20


class Carried(Frozen):
    """One file: its name below `files/`, hex SHA-256 and bytes."""

    name: str
    sha256: str
    size: int


class Index(Frozen):
    """`profiles`: the day of each one's lock. `files` are sorted by name."""

    schema_: Literal["sparkserve.export/1"] = Field(default="sparkserve.export/1", alias="schema")
    profiles: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")], str]
    files: tuple[Carried, ...]


def read(folder: Path) -> Index:
    """The index of `folder`. Raises `PIN.INDEX` where there is none, or none that we can read."""
    path = folder / INDEX
    try:
        with given.opened(path) as file:
            index = Index.model_validate_json(given.limited(file))
        if lacking := sorted({*BUILDER} - {*index.profiles}):
            found = f"no {', '.join(lacking)}, which every export has"
        else:
            return index
    except (FileNotFoundError, NotADirectoryError):
        found = "no index.json: not an export, or one that did not end"
    except (ValueError, OSError) as error:  # such as a FIFO, or no index
        found = given.fault(error)
    raise SparkserveError(
        "PIN.INDEX",
        expected="a folder of pins export",
        found=found,
        where=str(path),
        do=f"Run again where the pins are: ./sparkserve pins export {shlex.quote(str(folder))}",
    )


def copy(source: Path, target: Path, done: Callable[[int], None]) -> str:
    """Copy a file onto the disk; return the hex SHA-256 of what was read. `done` hears of the bytes."""
    digest = hashlib.sha256()
    with source.open("rb") as reader, target.open("wb") as writer:
        while block := reader.read(_BLOCK):
            digest.update(block)
            writer.write(block)
            done(len(block))
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()
