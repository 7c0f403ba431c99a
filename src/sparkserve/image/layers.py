"""The layers of an image or of a host closure, in one form, down to their files."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pydantic import BaseModel

from sparkserve.errors import SparkserveError
from sparkserve.image import layout
from sparkserve.pins.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Iterable

CLOSURE = "closure.json"
_BLOCK = 1 << 20


class Entry(NamedTuple):
    """A path of a layer. `content`: a file's digest, a link's target. An image keeps the execute bit only."""

    kind: str
    content: str = ""
    executable: bool = False
    size: int = 0


class Layer(Protocol):
    """`diff_id` is the digest of the layer's canonical tar; `name` is what people call it, or nothing."""

    name: str
    diff_id: str

    def entries(self) -> dict[str, Entry]:
        """Its paths, from the root of the image. Reads all of it."""


def of(place: Path) -> list[Layer]:
    """The layers of an OCI image layout or of a host closure. Raises `IMAGE.LAYOUT`."""
    if (place / CLOSURE).is_file():
        found = layout.document(place / CLOSURE, _Closure).root.layers
        return [_Tree(each.name, each.diff_id, Path(each.path), each.target) for each in found]
    manifest, config = layout.image(place)
    diff_ids = config.rootfs.diff_ids
    if len(diff_ids) != len(manifest.layers):
        raise _damaged(place, f"{len(diff_ids)} diff_ids for {len(manifest.layers)} layers", place)
    pairs = zip(manifest.layers, diff_ids, strict=True)
    return [_Tar(diff_id, layout.blob(place, layer), place) for layer, diff_id in pairs]


class _ClosureLayer(BaseModel):
    name: str
    target: str
    path: str
    diff_id: str


class _ClosureRoot(BaseModel):
    layers: tuple[_ClosureLayer, ...]


class _Closure(BaseModel):
    root: _ClosureRoot


class _Tar:
    def __init__(self, diff_id: str, path: Path, image: Path) -> None:
        self.name, self.diff_id, self.path, self.image = "", diff_id, path, image

    def entries(self) -> dict[str, Entry]:
        try:
            with tarfile.open(self.path, "r:*") as archive:
                return {member.name.strip("/"): _of_member(archive, member) for member in archive}
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise _damaged(self.path, str(error) or type(error).__name__, self.image) from error


class _Tree:
    def __init__(self, name: str, diff_id: str, path: Path, target: str) -> None:
        self.name, self.diff_id, self.path, self.target = name, diff_id, path, target.strip("/")

    def entries(self) -> dict[str, Entry]:
        parts = Path(self.target).parts
        found = {str(Path(*parts[: depth + 1])): Entry("folder") for depth in range(len(parts))}
        for base, folders, files in os.walk(self.path, onerror=_raise):
            for name in (*folders, *files):
                path = Path(base) / name
                found[str(Path(self.target) / path.relative_to(self.path))] = _of_path(path)
        return found


def _damaged(where: Path, found: str, image: Path) -> SparkserveError:
    return SparkserveError(
        "IMAGE.DAMAGED",
        expected="layers that are tars, plain or gzip, each with its diff_id",
        found=found,
        where=str(where),
        do=f"See what is wrong with: ./sparkserve image verify {image}",
    )


def _raise(error: OSError) -> None:
    raise error


def _of_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.issym() or member.islnk():
        return Entry("link" if member.issym() else "hard link", member.linkname)
    file = archive.extractfile(member)
    if file is None:
        return Entry("folder" if member.isdir() else "device")
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return Entry("file", digest.hexdigest(), bool(member.mode & 0o100), member.size)


def _of_path(path: Path) -> Entry:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", str(path.readlink()))
    if stat.S_ISDIR(status.st_mode):
        return Entry("folder")
    return Entry("file", file_sha256(path), bool(status.st_mode & 0o100), status.st_size)


def size(entries: Iterable[Entry]) -> int:
    """The bytes of all files."""
    return sum(entry.size for entry in entries)
