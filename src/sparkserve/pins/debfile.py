"""A Debian package as a file: an `ar` archive of `control.tar.*` and `data.tar.*`."""

from __future__ import annotations

import io
import re
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"!<arch>\n"
_HEADER = 60


def archive(deb: Path, name: str) -> bytes:
    """The content of the entry whose name begins with `name`. Raises ValueError, in words, without one."""
    with deb.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("a file that is not a Debian package")
        while len(header := file.read(_HEADER)) == _HEADER:
            size = int(header[48:58])
            if header[:16].strip().startswith(name.encode()):
                return file.read(size)
            file.seek(size + size % 2, io.SEEK_CUR)
    raise ValueError(f"a package without {name}")


def source(deb: Path) -> tuple[str, str]:
    """Name and version of the source that a package was built from.

    The control file names them where they are not the package's own. Raises ValueError, KeyError and
    tarfile.TarError for a file without them.
    """
    with tarfile.open(fileobj=io.BytesIO(archive(deb, "control.tar"))) as control:
        member = next((each for each in control if each.name in ("control", "./control")), None)
        file = control.extractfile(member) if member else None
        if file is None:
            raise ValueError("a package without control")
        fields: dict[str, str] = dict(re.findall(r"^(\S+): (.*)$", file.read().decode(), re.MULTILINE))
    name, _, version = (fields.get("Source") or fields["Package"]).partition(" ")
    return name, version.strip("()") or fields["Version"]
