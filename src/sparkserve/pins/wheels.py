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

    from sparkserve.pins.model import Target

# The oldest glibc 2.x that wheels for a processor can name, and the names that levels had before numbers.
_OLDEST = {
    "aarch64": (17, ("manylinux2014",)),
    "x86_64": (5, ("manylinux2014", "manylinux2010", "manylinux1")),
}


def platforms(target: Target) -> list[str]:
    """Every platform tag that runs on `target`, newest first: pip does not add the older ones itself."""
    newest = int(target.glibc.partition(".")[2])
    oldest, names = _OLDEST[target.machine]
    levels = [f"manylinux_2_{minor}" for minor in range(newest, oldest - 1, -1)]
    return [f"{level}_{target.machine}" for level in [*levels, *names, "linux"]]


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
