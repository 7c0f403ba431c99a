"""`image verify`: what is right passes, and what is not is named."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from image_values import layout, tar

from sparkserve.cli.commands.image import command
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

LAYERS: list[dict[str, bytes]] = [{"etc/os": b"debian"}, {"opt/x": b"x"}]
OTHER = f"sha256:{'0' * 64}"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return layout(tmp_path / "image", LAYERS)


def error(folder: Path) -> SparkserveError:
    found = CliRunner().invoke(command, ["verify", str(folder)]).exception
    assert isinstance(found, SparkserveError)
    return found


def blob(folder: Path, content: bytes) -> Path:
    return folder / "blobs/sha256" / hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_right_image_passes(tmp_path: Path, compressed: bool) -> None:
    folder = layout(tmp_path / "image", LAYERS, compressed=compressed)
    result = CliRunner().invoke(command, ["verify", str(folder), "--json"])
    size = sum(file.stat().st_size for file in (folder / "blobs/sha256").iterdir())
    assert json.loads(result.stdout) == {"ok": True, "images": 1, "blobs": 4, "bytes": size}


def test_a_flipped_bit_is_named_by_its_blob(image: Path) -> None:
    for file in (image / "blobs/sha256").iterdir():
        right = file.read_bytes()
        file.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
        found = error(image)
        assert (found.id, found.exit_code) == ("IMAGE.DAMAGED", 42)
        assert f"the blob {file.name} has the digest" in found.found
        file.write_bytes(right)


def test_a_missing_layer_is_named(image: Path) -> None:
    file = blob(image, tar(LAYERS[1]))
    file.unlink()
    assert error(image).found == f"the layer sha256:{file.name} is missing"


def test_a_blob_that_no_document_names_is_read_too(image: Path) -> None:
    (image / "blobs/sha256" / ("0" * 64)).write_bytes(b"stray")
    assert f"the blob {'0' * 64} has the digest" in error(image).found


@pytest.mark.parametrize("compressed", [False, True])
def test_a_diff_id_of_something_else_is_named_with_its_layer(tmp_path: Path, compressed: bool) -> None:
    right = f"sha256:{hashlib.sha256(tar(LAYERS[0])).hexdigest()}"
    folder = layout(tmp_path / "i", LAYERS, compressed=compressed, rootfs={"diff_ids": [right, OTHER]})
    holds = hashlib.sha256(tar(LAYERS[1])).hexdigest()
    assert error(folder).found.endswith(f" holds sha256:{holds}, and the config says {OTHER}")


def test_a_diff_id_too_few_is_named(tmp_path: Path) -> None:
    folder = layout(tmp_path / "i", LAYERS, rootfs={"diff_ids": [OTHER]})
    assert "1 diff_ids for 2 layers" in error(folder).found


def test_a_size_that_is_not_the_blobs_is_named(image: Path) -> None:
    index: dict[str, Any] = json.loads((image / "index.json").read_text())
    index["manifests"][0]["size"] += 1
    (image / "index.json").write_text(json.dumps(index))
    assert f"the manifest {index['manifests'][0]['digest']} has " in error(image).found


@pytest.mark.parametrize("name", ["oci-layout", "index.json"])
@pytest.mark.parametrize("text", [None, "", "[]", '{"manifests": [{"digest": "sha256:../x", "size": 1}]}'])
def test_a_folder_that_is_no_layout_is_refused(image: Path, name: str, text: str | None) -> None:
    (image / name).unlink()
    if text is not None:
        (image / name).write_text(text)
    found = error(image)
    assert (found.id, found.exit_code, found.where) == ("IMAGE.LAYOUT", 43, str(image / name))
