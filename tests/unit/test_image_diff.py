"""`image diff`: what two images share, and which files differ in the rest."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from image_values import layout, tar

from sparkserve.cli.commands.image import SHOWN, command
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BASE = {"etc/os": b"debian", "*usr/bin/x": b"ELF"}
SITE = {"opt/torch.py": b"one", "opt/same.py": b"same", "opt/gone.py": b"gone", "opt/link->same.py": b""}
NEXT = {"opt/torch.py": b"other", "opt/same.py": b"same", "opt/new.py": b"new", "opt/link->new.py": b""}


def run(*arguments: object) -> Any:
    return json.loads(CliRunner().invoke(command, ["diff", *map(str, arguments), "--json"]).stdout)


def diff_id(files: Mapping[str, bytes]) -> str:
    return f"sha256:{hashlib.sha256(tar(files)).hexdigest()}"


@pytest.mark.parametrize("compressed", [False, True])
def test_a_layer_that_changed_is_told_by_its_files(tmp_path: Path, compressed: bool) -> None:
    one = layout(tmp_path / "a", [BASE, SITE])
    other = layout(tmp_path / "b", [BASE, NEXT], compressed=compressed)
    found = run(one, other)
    assert found["same"] == [diff_id(BASE)]
    [layer] = found["layers"]
    assert (layer["state"], layer["old"], layer["new"]) == ("changed", diff_id(SITE), diff_id(NEXT))
    assert (layer["old_bytes"], layer["new_bytes"]) == (len("onesamegone"), len("othersamenew"))
    files = {file["path"]: (file["old"], file["new"]) for file in layer["files"]}
    assert files.keys() == {"opt/torch.py", "opt/gone.py", "opt/new.py", "opt/link"}
    assert files["opt/gone.py"][1] is files["opt/new.py"][0] is None
    assert [each["content"] for each in files["opt/link"]] == ["same.py", "new.py"]


def test_layers_are_paired_by_what_they_hold_and_not_by_their_place(tmp_path: Path) -> None:
    model = {"model/weights": b"w"}
    one = layout(tmp_path / "a", [BASE, SITE])
    other = layout(tmp_path / "b", [model, NEXT])
    states = {(each["state"], each["old"], each["new"]) for each in run(one, other)["layers"]}
    assert states == {
        ("changed", diff_id(SITE), diff_id(NEXT)),
        ("added", None, diff_id(model)),
        ("removed", diff_id(BASE), None),
    }


def test_equal_images_differ_in_nothing(tmp_path: Path) -> None:
    one, other = layout(tmp_path / "a", [BASE, SITE]), layout(tmp_path / "b", [BASE, SITE])
    assert run(one, other)["layers"] == []
    assert "Nothing differs" in CliRunner().invoke(command, ["diff", str(one), str(other)]).output


def test_the_execute_bit_counts(tmp_path: Path) -> None:
    one, other = layout(tmp_path / "a", [{"bin/x": b"x"}]), layout(tmp_path / "b", [{"*bin/x": b"x"}])
    [file] = run(one, other)["layers"][0]["files"]
    assert (file["old"]["executable"], file["new"]["executable"]) == (False, True)


def test_a_closure_has_the_layers_of_its_image(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, content in NEXT.items():
        path, arrow, target = name.removeprefix("opt/").partition("->")
        if arrow:
            (tree / path).symlink_to(target)
        else:
            (tree / path).write_bytes(content)
    layers = [
        {"name": "base", "target": "/", "path": "/nowhere", "diff_id": diff_id(BASE)},
        {"name": "site", "target": "/opt", "path": str(tree), "diff_id": diff_id(NEXT)},
    ]
    (tmp_path / "closure.json").write_text(json.dumps({"root": {"layers": layers}}))
    found = run(layout(tmp_path / "a", [BASE, SITE]), tmp_path)
    [layer] = found["layers"]
    assert layer["name"] == "site"
    paths = {file["path"] for file in layer["files"]}
    # The tars of these tests have no folders.
    assert paths == {"opt", "opt/torch.py", "opt/gone.py", "opt/new.py", "opt/link"}
    assert run(layout(tmp_path / "b", [BASE, NEXT]), tmp_path)["layers"] == []


def test_what_is_printed_is_as_much_as_somebody_reads(tmp_path: Path) -> None:
    many = {f"opt/{number:03}": b"old" for number in range(SHOWN + 2)}
    one = layout(tmp_path / "a", [many])
    other = layout(tmp_path / "b", [many | dict.fromkeys(many, b"newer") | {"opt/000": b"old"}])
    out = CliRunner().invoke(command, ["diff", str(one), str(other)]).stdout
    assert f"{SHOWN + 1} paths differ" in out
    assert "  ~ opt/001  3 -> 5\n" in out
    assert "  and 1 more: --json has all\n" in out


def test_a_layer_that_is_no_tar_says_how_to_see_more(tmp_path: Path) -> None:
    one, other = layout(tmp_path / "a", [BASE]), layout(tmp_path / "b", [SITE])
    file = other / "blobs/sha256" / diff_id(SITE).removeprefix("sha256:")
    file.write_bytes(file.read_bytes()[:700])
    error = CliRunner().invoke(command, ["diff", str(one), str(other)]).exception
    assert isinstance(error, SparkserveError)
    assert (error.id, error.where) == ("IMAGE.DAMAGED", str(file))
    assert f"image verify {other}" in error.do


@pytest.mark.parametrize("count", [0, 2])
def test_a_layout_of_no_or_several_images_is_refused(tmp_path: Path, count: int) -> None:
    one, other = layout(tmp_path / "a", [BASE]), layout(tmp_path / "b", [SITE])
    index = json.loads((other / "index.json").read_text())
    (other / "index.json").write_text(json.dumps({"manifests": index["manifests"] * count}))
    error = CliRunner().invoke(command, ["diff", str(one), str(other)]).exception
    assert isinstance(error, SparkserveError)
    assert error.id == "IMAGE.LAYOUT"


def test_help_has_examples() -> None:
    for name in ("diff", "verify"):
        assert f"./sparkserve image {name}" in CliRunner().invoke(command, [name, "--help"]).stdout
