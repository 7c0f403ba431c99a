"""Files with keys, and a process that may be read by /proc again after one was read."""

from __future__ import annotations

import ctypes
import secrets
from typing import TYPE_CHECKING

import pytest

from sparkserve import api_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def new() -> str:
    """A key that nobody has seen."""
    return secrets.token_hex(32)


def write(path: Path, *lines: str, mode: int = 0o600) -> Path:
    """A file of these lines, new in its place in one step."""
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    part.write_text("".join(f"{line}\n" for line in lines))
    part.chmod(mode)
    return part.replace(path)


@pytest.fixture(autouse=True)
def dumpable() -> Iterator[None]:
    """Other tests of this process look at it in /proc, which is root's after a key was read."""
    yield
    ctypes.CDLL(None).prctl(api_key.PR_SET_DUMPABLE, 1, 0, 0, 0)
