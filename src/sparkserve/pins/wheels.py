"""Wheel files: what they say of themselves, and which of them a machine can run."""

from __future__ import annotations

import re
import zipfile
from email.parser import HeaderParser
from typing import TYPE_CHECKING

from sparkserve.pins import store
from sparkserve.pins.model import Pin, clean_name, normal

if TYPE_CHECKING:
    from pathlib import Path

_OLDEST_GLIBC_MINOR = 5


def platforms(glibc: str) -> list[str]:
    """Every platform tag that runs with `glibc`, newest first: pip does not add the older ones itself."""
    newest = int(glibc.partition(".")[2])
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(newest, _OLDEST_GLIBC_MINOR - 1, -1)]
    return [*tags, "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]


def read(file: Path) -> Pin:
    """The pin of a wheel file; `requires` leaves out what only extras need."""
    with zipfile.ZipFile(file) as archive:
        member = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        fields = HeaderParser().parsestr(archive.read(member).decode())
    requires = [str(text) for text in fields.get_all("Requires-Dist", [])]
    return Pin(
        kind="wheel",
        name=normal(str(fields["Name"])),
        version=str(fields["Version"]),
        file=clean_name(file.name),
        sha256=store.file_sha256(file),
        size=file.stat().st_size,
        requires=tuple(text for text in requires if not re.search(r"\bextra\s*==", text)),
    )
