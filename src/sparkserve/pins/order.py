"""Which of two versions is the newer one, by the rules of who made them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

if TYPE_CHECKING:
    from typing import Any

_END = ((0,), 0)


def pypi(version: str) -> Version:
    """The key of a wheel's version, without its local part: `2.13.0+cpu` has the faults of `2.13.0`.

    Raises ValueError for a text that is none.
    """
    return Version(Version(version).public)


def debian(version: str) -> tuple[Any, ...]:
    """The key of a Debian version: epoch, upstream's version and revision, as dpkg compares them.

    Raises ValueError for a text that is none.
    """
    epoch, _, rest = version.rpartition(":")
    upstream, dash, revision = rest.rpartition("-")
    if not dash:
        upstream, revision = rest, "0"
    if not revision or not re.fullmatch(r"[0-9]*", epoch) or not re.fullmatch(r"[0-9A-Za-z.+:~-]+", upstream):
        raise ValueError(f"{version!r} is no version of Debian's")
    return int(epoch or 0), _part(upstream), _part(revision)


def _part(text: str) -> tuple[Any, ...]:
    """Text and numbers in turn, with an end: nothing comes after `~`, and before all else."""
    pairs = re.findall(r"(\D*)(\d*)", text)
    return (*(((*map(_rank, words), 0), int(number or 0)) for words, number in pairs), _END)


def _rank(char: str) -> int:
    if char == "~":
        return -1
    return ord(char) if char.isalpha() else ord(char) + 256
