"""An OCI image layout: its documents, and where its blobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, Field, ValidationError

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

BLOBS = "blobs/sha256"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Descriptor(BaseModel):
    """A blob, as documents name it; its digest is also its file name, so nothing else may stand there."""

    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: int = Field(ge=0)
    media_type: str = Field(alias="mediaType")

    @property
    def compressed(self) -> bool:
        """Whether it is a gzip of what it holds."""
        return self.media_type.endswith(("gzip", ".tar.gz"))


class Index(BaseModel):
    """`index.json`: the images of the layout."""

    manifests: tuple[Descriptor, ...]


class Manifest(BaseModel):
    """One image: its configuration and its layers, the lowest first."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


class RootFs(BaseModel):
    """`diff_ids`: the digest of each layer's tar, uncompressed."""

    diff_ids: tuple[str, ...]


class Config(BaseModel):
    """What we read of an image's configuration."""

    rootfs: RootFs


class _Version(BaseModel):
    version: str = Field(alias="imageLayoutVersion", pattern=r"^1\.")


_Document = TypeVar("_Document", bound=BaseModel)


def blob(folder: Path, descriptor: Descriptor) -> Path:
    """The file of a blob."""
    return folder / BLOBS / descriptor.digest.removeprefix("sha256:")


def document(path: Path, kind: type[_Document]) -> _Document:
    """Read one of the documents. Raises `IMAGE.LAYOUT` for a file that is absent or none of that kind."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        found = "no such file"
    except ValidationError as error:
        first = error.errors()[0]
        found = f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the top'}"
    raise SparkserveError(
        "IMAGE.LAYOUT",
        expected="an OCI image layout: a folder with oci-layout, index.json and blobs",
        found=found,
        where=str(path),
        do="Name such a folder, for instance that of: ./sparkserve nix build .#local-image",
    )


def index(folder: Path) -> Index:
    """The images of the layout `folder`. Raises `IMAGE.LAYOUT`, also for a version that we do not know."""
    document(folder / "oci-layout", _Version)
    return document(folder / "index.json", Index)


def image(folder: Path) -> tuple[Manifest, Config]:
    """The one image of the layout `folder`. Raises `IMAGE.LAYOUT` when it has none or several."""
    manifests = index(folder).manifests
    if len(manifests) != 1 or manifests[0].media_type != MANIFEST:
        raise SparkserveError(
            "IMAGE.LAYOUT",
            expected="a layout with one image",
            found=", ".join(each.media_type for each in manifests) or "none",
            where=str(folder / "index.json"),
            do="Copy the image that you mean into a layout of its own (skopeo copy oci:... oci:...).",
        )
    manifest = document(blob(folder, manifests[0]), Manifest)
    return manifest, document(blob(folder, manifest.config), Config)
