"""OCI image layouts for tests, made of files in memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def tar(files: Mapping[str, bytes]) -> bytes:
    """A tar of these files; a name that begins with `*` is executable, and `->` in it makes a link."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            path, arrow, target = name.lstrip("*").partition("->")
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755 if name.startswith("*") else 0o644
            if arrow:
                entry.type, entry.linkname = tarfile.SYMTYPE, target
            entry.size = 0 if arrow else len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def layout(
    folder: Path, layers: Sequence[Mapping[str, bytes]], *, compressed: bool = False, **config: Any
) -> Path:
    """Write an image of `layers`; keywords replace fields of its configuration."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def add(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    tars = [tar(files) for files in layers]
    diff_ids = [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in tars]
    kind = "layer.v1.tar+gzip" if compressed else "layer.v1.tar"
    written = [add(gzip.compress(each, mtime=0) if compressed else each, kind) for each in tars]
    value = {"rootfs": {"type": "layers", "diff_ids": diff_ids}} | config
    manifest = {"config": add(json.dumps(value).encode(), "config.v1+json"), "layers": written}
    index = {"manifests": [add(json.dumps(manifest).encode(), "manifest.v1+json")]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder
