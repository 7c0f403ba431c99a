"""The first builder: an executable from a deb, alone in a folder, made without any Nix build."""

from __future__ import annotations

import io
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.pins import debfile

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    try:
        data = debfile.archive(deb, "data.tar")
    except ValueError as error:
        raise _bad(deb, str(error)) from None
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for path in (member, f"./{member}"):
            try:
                found = archive.extractfile(path)
            except KeyError:
                continue
            if found is not None:
                return found.read()
    raise _bad(deb, f"a package without {member}")


def _bad(deb: Path, found: str) -> SparkserveError:
    return SparkserveError(
        "PIN.FETCH",
        expected="a Debian package with the executable of stage 0",
        found=found,
        where=str(deb),
        do="Correct [[tree]] in the profile.",
    )
