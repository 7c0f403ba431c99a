"""`image verify`: every blob has the bytes of its name, and every document names what is there."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.image import layout
from sparkserve.pins.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_BLOCK = 1 << 20


class Verified(NamedTuple):
    """What was read and found right."""

    images: int
    blobs: int
    size: int


def verify(folder: Path, detail: Callable[[str], None]) -> Verified:
    """Read all of the layout `folder`.

    Raises `IMAGE.DAMAGED` naming every blob whose digest, size or diff_id is wrong or that is missing, and
    `IMAGE.LAYOUT` for a folder that is no layout. A document is read only when its own digest is right.
    """
    found = _Verify(folder, detail)
    images = layout.index(folder).manifests
    found.blobs()
    for each in images:
        found.manifest(each)
    if found.wrong:
        raise SparkserveError(
            "IMAGE.DAMAGED",
            expected="every blob with the bytes of its digest, and the sizes and diff_ids of its image",
            found="; ".join(found.wrong),
            where=str(folder),
            do="Make the image again, or copy it again from where it is right.",
        )
    return Verified(len(images), len(found.sizes), sum(found.sizes.values()))


class _Verify:
    def __init__(self, folder: Path, detail: Callable[[str], None]) -> None:
        self.folder, self.detail = folder, detail
        self.wrong: list[str] = []
        self.sizes: dict[str, int] = {}  # of the blobs with the right digest

    def blobs(self) -> None:
        """Hash every blob, also one that no document names."""
        files = sorted(path for path in (self.folder / layout.BLOBS).glob("*") if path.is_file())
        for number, path in enumerate(files, 1):
            self.detail(f"blob {number} of {len(files)}")
            digest = file_sha256(path)
            if digest == path.name:
                self.sizes[f"sha256:{digest}"] = path.stat().st_size
            else:
                self.wrong.append(f"the blob {path.name} has the digest {digest}")

    def manifest(self, descriptor: layout.Descriptor) -> None:
        if descriptor.media_type != layout.MANIFEST:
            self.wrong.append(f"{descriptor.digest} is a {descriptor.media_type}, which is not followed")
            return
        if not self._there(descriptor, "manifest"):
            return
        manifest = layout.document(layout.blob(self.folder, descriptor), layout.Manifest)
        layers = [each for each in manifest.layers if self._there(each, "layer")]
        if not self._there(manifest.config, "config"):
            return
        config = layout.document(layout.blob(self.folder, manifest.config), layout.Config)
        diff_ids = config.rootfs.diff_ids
        if len(diff_ids) != len(manifest.layers):
            counts = f"{len(diff_ids)} diff_ids for {len(manifest.layers)} layers"
            self.wrong.append(f"the config {manifest.config.digest} has {counts}")
            return
        for layer, diff_id in zip(manifest.layers, diff_ids, strict=True):
            if layer in layers and (found := self._diff_id(layer)) != diff_id:
                self.wrong.append(f"the layer {layer.digest} holds {found}, and the config says {diff_id}")

    def _there(self, descriptor: layout.Descriptor, what: str) -> bool:
        size = self.sizes.get(descriptor.digest)
        if size is None:
            # A damaged one has been named.
            if not layout.blob(self.folder, descriptor).is_file():
                self.wrong.append(f"the {what} {descriptor.digest} is missing")
            return False
        if size != descriptor.size:
            self.wrong.append(f"the {what} {descriptor.digest} has {size} bytes, not {descriptor.size}")
            return False
        return True

    def _diff_id(self, layer: layout.Descriptor) -> str:
        if not layer.compressed:
            return layer.digest
        digest = hashlib.sha256()
        try:
            with gzip.open(layout.blob(self.folder, layer)) as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        except (OSError, EOFError, zlib.error) as error:
            return f"no gzip ({error})"
        return f"sha256:{digest.hexdigest()}"
