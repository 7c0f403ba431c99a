"""`pins export` and `pins import`: the same bytes twice, nothing half made, what is wrong is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pins_values import FolderStore, deb, pin, pin_list

from sparkserve.errors import SparkserveError
from sparkserve.pins import BUILDER, carried, exporting, importing, model, store, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTENTS = {name: f"content of {name}".encode() for name in ("one", "three", "two")}
NAMES = [f"{name}-1.0-py3-none-any.whl" for name in CONTENTS]


class Machine(FolderStore):
    """A checkout with pin lists and a store of its own, which is empty; `become` makes it this process's."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.root, self.monkeypatch = root, monkeypatch
        (root / "nix/pins").mkdir(parents=True)
        (root / "store").mkdir()
        self.package = deb(root / "bb_1_amd64.deb", {"./bin/bb": b"ELF"})
        self.become()
        source = pin(self.package.read_bytes(), kind="deb", name="bb", version="1", file=self.package.name)
        tree = pin(
            b"ELF", kind="tree", name="bb", version="1", file="bb", source=source.file, member="bin/bb"
        )
        for name in BUILDER:
            model.save(pin_list(profile=name))
        model.save(pin_list(source, tree, profile="stage0"))
        model.save(pin_list(*(pin(content, name=name) for name, content in CONTENTS.items())))

    def become(self) -> Machine:
        self.monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(self.root))
        self.monkeypatch.setattr(store, "STORE", str(self.root / "store"))
        self.install(self.monkeypatch)
        return self

    def add(self, files: Sequence[Path], *, recursive: bool = False) -> list[str]:
        made = super().add(files, recursive=recursive)
        for path in made:
            Path(path).write_bytes(self.added[path])
        return made

    def fill(self) -> Machine:
        folder = self.root / "upstream"
        folder.mkdir()
        files = [folder / name for name in NAMES]
        for file, content in zip(files, CONTENTS.values(), strict=True):
            file.write_bytes(content)
        self.add([*files, self.package])
        return self


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "here", monkeypatch).fill()


@pytest.fixture
def usb(here: Machine, tmp_path: Path) -> Path:
    exporting.export(tmp_path / "usb", ["some"])
    return tmp_path / "usb"


@pytest.fixture
def there(usb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "there", monkeypatch)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(folder: Path) -> SparkserveError:
    with pytest.raises(SparkserveError) as caught:
        importing.take(folder)
    return caught.value


def test_an_export_has_the_files_of_the_profile_and_of_the_builder_and_an_index(usb: Path) -> None:
    assert sorted(content(usb)) == sorted(
        ["index.json", "files/bb_1_amd64.deb", *(f"files/{n}" for n in NAMES)]
    )
    index = json.loads((usb / "index.json").read_text())
    assert index["schema"] == "sparkserve.export/1"
    assert index["profiles"] == dict.fromkeys(sorted([*BUILDER, "some"]), "2026-01-02")
    one = pin(CONTENTS["one"], name="one")
    assert {"name": one.file, "sha256": one.sha256, "size": one.size} in index["files"]


def test_two_exports_are_equal(usb: Path, tmp_path: Path) -> None:
    exporting.export(tmp_path / "again", ["some"])
    assert content(tmp_path / "again") == content(usb)


def test_an_export_goes_on_and_mends_what_is_damaged(usb: Path, tmp_path: Path) -> None:
    before = content(usb)
    (usb / "files" / NAMES[0]).write_bytes(CONTENTS["one"].upper())
    (usb / "files" / NAMES[1]).unlink()
    for name in NAMES[1:]:
        (usb / "files" / f"{name}.partial").write_bytes(b"cont")
    written = exporting.export(usb, ["some"])
    assert written.copied == len(CONTENTS["one"]) + len(CONTENTS["three"])
    assert content(usb) == before
    assert exporting.export(usb, ["some"]).copied == 0


def test_an_export_that_ends_early_has_no_index_and_no_half_file(
    usb: Path, here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(source: Path, target: Path, done: object) -> str:
        target.write_bytes(b"cont")
        raise KeyboardInterrupt

    before = content(usb)
    model.save(pin_list(pin(b"rebuilt", name="one")))
    Path(pin(b"rebuilt", name="one").path).write_bytes(b"rebuilt")
    here.added[pin(b"rebuilt", name="one").path] = b"rebuilt"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(carried, "copy", ends)
        exporting.export(usb, ["some"])
    # The index of before would now name what is on its way out.
    assert "index.json" not in content(usb)
    assert {name for name in content(usb) if not name.endswith(".partial")} == before.keys() - {"index.json"}
    error = refused(usb)
    assert error.id == "PIN.INDEX"
    assert f"pins export {usb}" in error.do


def test_what_the_store_lacks_or_has_damaged_is_not_exported(here: Machine, tmp_path: Path) -> None:
    path = Path(pin(CONTENTS["one"], name="one").path)
    path.write_bytes(b"other")
    with pytest.raises(SparkserveError) as caught:
        exporting.export(tmp_path / "usb", ["some"])
    assert (caught.value.id, caught.value.where) == ("PIN.HASH", str(path))
    assert NAMES[0] not in str(list((tmp_path / "usb").rglob("*")))
    del here.added[str(path)]
    with pytest.raises(SparkserveError) as caught:
        exporting.export(tmp_path / "usb", ["some"])
    assert caught.value.id == "PIN.MISSING"
    assert NAMES[0] in caught.value.found


def test_an_import_fills_an_empty_store_and_keeps_it(there: Machine, usb: Path) -> None:
    before = content(usb)
    taken = importing.take(usb)
    pins = [each for name in ("some", "stage0") for each in model.load(name).pins]
    assert {each.path for each in pins} == set(there.added) == there.kept
    assert taken == (len(pins), sum(each.size for each in pins if each.kind != "tree"))
    assert importing.take(usb) == (len(pins), 0)
    assert content(usb) == before  # the user's files, not ours to move
    assert list(workspace.folder().iterdir()) == []


def test_an_import_refuses_a_damaged_file_and_names_it(there: Machine, usb: Path) -> None:
    file = usb / "files" / NAMES[1]
    file.write_bytes(file.read_bytes()[:-1] + b"X")
    (usb / "files" / NAMES[2]).unlink()
    error = refused(usb)
    assert (error.id, error.where) == ("PIN.HASH", str(usb))
    assert error.found == f"1 damaged: {NAMES[1]}; 1 missing: {NAMES[2]}"
    assert {Path(path).name.partition("-")[2] for path in there.added} == {NAMES[0], "bb_1_amd64.deb"}


def test_an_import_names_what_is_missing(there: Machine, usb: Path) -> None:
    (usb / "files" / NAMES[2]).unlink()
    error = refused(usb)
    assert (error.id, error.found) == ("PIN.MISSING", f"1 missing: {NAMES[2]}")


def test_an_export_of_other_lists_is_missing_what_is_new_here_and_not_damaged(
    there: Machine, usb: Path
) -> None:
    model.save(pin_list(pin(b"rebuilt", name="one")))
    error = refused(usb)
    assert (error.id, error.found) == ("PIN.MISSING", f"1 missing: {NAMES[0]}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": "sparkserve.export/2", "profiles": {}, "files": []}',
        '{"profiles": {"../x": ""}}',
    ],
)
def test_an_index_that_is_none_is_refused(there: Machine, usb: Path, text: str) -> None:
    (usb / "index.json").write_text(text)
    error = refused(usb)
    assert (error.id, error.where) == ("PIN.INDEX", str(usb / "index.json"))


def test_a_full_disk_is_seen_before_the_first_byte(
    there: Machine, usb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    assert refused(usb).id == "HOST.DISK"
    assert there.added == {}
