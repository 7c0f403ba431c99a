"""Fetching: only what lacks, only what is right, and nothing that a killed run had finished is lost."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest
from pins_values import SPARK, TARGET, FolderStore, deb, pin, pin_list

from sparkserve.errors import SparkserveError
from sparkserve.pins import fetch, model, pip, store, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.pins.model import Pin, Target

MIB = 1 << 20


@pytest.fixture
def nix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    (tmp_path / "nix/pins").mkdir(parents=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 0, 1 << 40))
    monkeypatch.setattr(pip, "places", lambda given: pip.Places())
    return FolderStore().install(monkeypatch)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What pip finds, by file name; `asked` is not kept because the store shows it."""
    files: dict[str, bytes] = {}

    def download(target: Target, exact: Sequence[str], base: Path, where: object) -> list[Path]:
        made = []
        for name in (f"{text.replace('==', '-')}-py3-none-any.whl" for text in exact):
            if name not in files:
                raise pip.AbsentError("PIN.FETCH", expected=name, found="none", where="", do="")
            made.append(base / name)
            made[-1].write_bytes(files[name])
        return made

    monkeypatch.setattr(pip, "download", download)
    return files


def named(name: str, content: bytes = b"content") -> Pin:
    return pin(content, name=name, file=f"{name}-1.0-py3-none-any.whl")


def test_what_the_store_lacks_is_fetched_kept_and_removed_from_the_folder(
    nix: FolderStore, index: dict[str, bytes]
) -> None:
    one, two = named("one"), named("two", b"second")
    nix.added[one.path] = b"content"
    index[two.file] = b"second"
    model.save(pin_list(one, two))
    assert fetch.fetch(["some"], [], None) == two.size
    assert nix.added == {one.path: b"content", two.path: b"second"}
    assert nix.kept == {one.path, two.path}
    assert list(workspace.folder().iterdir()) == []


def test_a_log_gets_no_bar(
    nix: FolderStore, index: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    index["one-1.0-py3-none-any.whl"] = b"content"
    model.save(pin_list(pin()))
    fetch.fetch(["some"], [], None)
    assert capsys.readouterr() == ("", "")


def test_nothing_to_do_takes_no_lock(nix: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    one = named("one")
    nix.added[one.path] = b"content"
    model.save(pin_list(one))
    monkeypatch.setattr(workspace, "locked", None)
    assert fetch.fetch(["some"], [], None) == 0
    assert nix.kept == {one.path}


def test_a_wrong_file_is_refused_and_the_right_ones_are_taken(
    nix: FolderStore, index: dict[str, bytes]
) -> None:
    one, two = named("one"), named("two")
    index |= {one.file: b"other!!", two.file: b"content"}
    model.save(pin_list(one, two))
    with pytest.raises(SparkserveError) as caught:
        fetch.fetch(["some"], [], None)
    error = caught.value
    assert error.id == "PIN.HASH"
    assert one.file in error.expected
    assert one.sha256 in error.expected
    assert hashlib.sha256(b"other!!").hexdigest() in error.found
    assert nix.added.keys() == nix.kept == {two.path}
    assert list(workspace.folder().iterdir()) == []


def test_an_absent_wheel_costs_no_other(nix: FolderStore, index: dict[str, bytes]) -> None:
    pins = [named(name) for name in ("one", "two", "three")]
    index |= {pins[0].file: b"content", pins[2].file: b"content"}
    model.save(pin_list(*pins))
    with pytest.raises(pip.AbsentError):
        fetch.fetch(["some"], [], None)
    assert nix.added.keys() == {pins[0].path, pins[2].path}


def test_another_file_of_the_same_version_is_refused(nix: FolderStore, index: dict[str, bytes]) -> None:
    one = pin(file="one-1.0-7-py3-none-any.whl")
    index["one-1.0-py3-none-any.whl"] = b"content"
    model.save(pin_list(one))
    with pytest.raises(SparkserveError) as caught:
        fetch.fetch(["some"], [], None)
    assert caught.value.id == "PIN.FETCH"
    assert "one-1.0-py3-none-any.whl" in caught.value.found


def test_a_folder_gives_wheels_and_debs_and_keeps_its_own(nix: FolderStore, tmp_path: Path) -> None:
    usb = tmp_path / "usb/deep"
    usb.mkdir(parents=True)
    wheel, plain, epoch = named("one"), b"deb", b"deb with epoch"
    debs = [
        pin(plain, kind="deb", name="a", version="1~x", file="a_1-x_amd64.deb"),
        pin(epoch, kind="deb", name="b", version="2:1-3", file="b_2-1-3_amd64.deb"),
    ]
    (usb / wheel.file).write_bytes(b"content")
    (usb / "a_1~x_amd64.deb").write_bytes(plain)
    (usb / "b_1-3_amd64.deb").write_bytes(epoch)
    (usb / wheel.file).chmod(0o755)
    model.save(pin_list(*debs, wheel))
    fetch.fetch(["some"], [str(tmp_path / "usb")], None)
    assert nix.added.keys() == {wheel.path, *(each.path for each in debs)}
    assert (usb / wheel.file).stat().st_mode & 0o777 == 0o755
    assert len(list(usb.iterdir())) == 3


def test_a_tree_is_made_from_its_deb(
    nix: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = deb(tmp_path / "bb_1_amd64.deb", {"./bin/bb": b"ELF"})
    source = pin(package.read_bytes(), kind="deb", name="bb", version="1", file=package.name)
    tree = pin(b"ELF", kind="tree", name="bb", file="bb", source=source.file, member="bin/bb")
    monkeypatch.setattr(type(source), "path", property(lambda p: str(package) if p.kind == "deb" else "tree"))
    nix.added[str(package)] = b""
    model.save(pin_list(source, tree))
    fetch.fetch(["some"], [], None)
    assert store.fixed_path("bb", hashlib.sha256(b"ELF").hexdigest(), recursive=True) in nix.added


def test_a_tree_that_comes_out_different_is_refused(nix: FolderStore, tmp_path: Path) -> None:
    package = deb(tmp_path / "bb_1_amd64.deb", {"./bin/bb": b"ELF"})
    tree = pin(b"another", kind="tree", name="bb", file="bb", source=package.name, member="bin/bb")
    with pytest.raises(SparkserveError) as caught:
        workspace.plant(tree, package)
    assert caught.value.id == "PIN.HASH"
    assert nix.added == {}


def test_whole_files_of_a_killed_run_are_taken_and_the_rest_is_removed(
    nix: FolderStore, index: dict[str, bytes]
) -> None:
    whole, cut, wrong = named("whole"), named("cut"), named("wrong")
    with workspace.locked():
        run = workspace.folder() / "run-1/tmp/pip-unpack"
        run.mkdir(parents=True)
        (run / whole.file).write_bytes(b"content")
        (run / cut.file).write_bytes(b"cont")
        (run / wrong.file).write_bytes(b"CONTENT")
        (workspace.folder() / "stray").touch()
        found = workspace.left_over([whole, cut, wrong])
        assert {each: path.read_bytes() for each, path in found.items()} == {whole: b"content"}
        assert list(workspace.folder().iterdir()) == [found[whole]]
        # And once more: the run that took it over is killed too.
        assert workspace.left_over([whole, cut, wrong]) == found
    # No index has it: it comes from the folder, and leaves the folder.
    model.save(pin_list(whole))
    fetch.fetch(["some"], [], None)
    assert nix.added.keys() == {whole.path}
    assert list(workspace.folder().iterdir()) == []


def test_a_full_disk_is_seen_before_the_download(
    nix: FolderStore, index: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    model.save(pin_list(named("one")))
    with pytest.raises(SparkserveError) as caught:
        fetch.fetch(["some"], [], None)
    assert caught.value.id == "HOST.DISK"


@pytest.mark.parametrize(("errno", "id"), [(28, "HOST.DISK"), (13, "HOST.ROOT")])
def test_an_operating_system_error_in_the_folder_is_ours(nix: FolderStore, errno: int, id: str) -> None:
    with pytest.raises(SparkserveError) as caught, workspace.locked():
        raise OSError(errno, "text", "/some/file")
    assert caught.value.id == id


def test_downloads_are_divided_by_size_and_target() -> None:
    other = TARGET.model_copy(update={"python": "3.12"})
    large, rest = pin(name="large", size=30 * MIB), [pin(name=f"w{i:02}", size=MIB) for i in range(20)]
    packages = [pin(kind="deb", name=name) for name in ("a", "b")]
    stranger = pin(name="stranger", size=1)
    files = dict.fromkeys([*rest, *packages, large], TARGET) | {stranger: other}
    got = [[p.name for p in batch] for batch in fetch.batches(files)]
    assert got[0] == ["a", "b"]
    assert got[1] == ["large"]
    assert [len(batch) for batch in got[2:]] == [12, 8, 1]
    assert got[-1] == ["stranger"]

    # apt has a root for each suite and processor, and two calls in one root would trip over its lock.
    again = pin(kind="deb", name="again")
    spark = pin(kind="deb", name="spark", file="spark_1.0_arm64.deb")
    debs = fetch.batches(dict.fromkeys(packages, TARGET) | {again: other, spark: SPARK})
    assert [[p.name for p in batch] for batch in debs] == [["a", "b", "again"], ["spark"]]

    both = {pin(name="openai", version=v, file=f"openai-{v}.whl"): TARGET for v in ("2.8.0", "3.57.0")}
    assert [len(batch) for batch in fetch.batches(both)] == [1, 1]
