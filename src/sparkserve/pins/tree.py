"""The first builder: an executable from a deb, alone in a folder, made without any Nix build."""

from __future__ import annotations

import io
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterator

_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60


@contextmanager
def unpacked(deb: Path, member: str, name: str) -> Iterator[Path]:
    """Yield a folder `name` that holds only the executable `name` (mode 755): `member` of `deb`'s data.

    Busybox looks at the name it is called by, so the file inside has to be called `busybox`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        folder.mkdir()
        file = folder / name
        file.write_bytes(_member(deb, member))
        file.chmod(0o755)
        yield folder


def _member(deb: Path, member: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(_data_archive(deb))) as archive:
        for path in (member, f"./{member}"):
            try:
                found = archive.extractfile(path)
            except KeyError:
                continue
            if found is not None:
                return found.read()
    raise _bad(deb, f"a package without {member}")


def _data_archive(deb: Path) -> bytes:
    """The content of `data.tar.*`: a deb is an `ar` file, with a 60-byte header before each entry."""
    with deb.open("rb") as file:
        if file.read(len(_AR_MAGIC)) != _AR_MAGIC:
            raise _bad(deb, "a file that is not a Debian package")
        while len(header := file.read(_AR_HEADER)) == _AR_HEADER:
            size = int(header[48:58])
            if header[:16].strip().startswith(b"data.tar"):
                return file.read(size)
            file.seek(size + size % 2, io.SEEK_CUR)
    raise _bad(deb, "a package without data.tar")


def _bad(deb: Path, found: str) -> SparkserveError:
    return SparkserveError(
        "PIN.FETCH",
        expected="a Debian package with the executable of stage 0",
        found=found,
        where=str(deb),
        do="Correct [[tree]] in the profile.",
    )
