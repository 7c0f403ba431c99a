"""Names of fleets, and making one, without git or Nix."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sparkserve.errors import SparkserveError
from sparkserve.fleet import DEFAULT_FLEET, names, new, plans

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("local-single", "desk"):
        (tmp_path / "hosts" / name).mkdir(parents=True)
        (tmp_path / "hosts" / name / "fleet.nix").write_text("{ }")
    (tmp_path / "hosts/empty").mkdir()
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    return tmp_path


def test_the_default_fleet_exists() -> None:
    assert (ROOT / "hosts" / DEFAULT_FLEET / "fleet.nix").exists()


def test_a_fleet_is_a_folder_with_a_fleet_nix(checkout: Path) -> None:
    assert names.known() == ["desk", "local-single"]
    assert names.file("desk") == checkout / "hosts/desk/fleet.nix"


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("locl-single", "Did you mean local-single? ./sparkserve fleet new NAME makes one."),
        ("triangle", "./sparkserve fleet new NAME makes one."),
        ("empty", "./sparkserve fleet new NAME makes one."),
        ("../hosts/desk", "./sparkserve fleet new NAME makes one."),
    ],
)
def test_an_unknown_name_gets_the_close_ones(name: str, do: str) -> None:
    with pytest.raises(SparkserveError) as caught:
        plans.evaluate(name)
    assert caught.value.id == "FLEET.NAME"
    assert caught.value.expected == "one of the fleets desk, local-single"
    assert caught.value.do == do


@pytest.mark.parametrize("name", ["", "Desk", "1st", "a b", "a/b", "..", "-a", "a" * 32, "desk\n"])
def test_new_refuses_a_bad_name(checkout: Path, name: str) -> None:
    with pytest.raises(SparkserveError, match="small letters, digits and -"):
        new.create(name)
    assert sorted(path.name for path in (checkout / "hosts").iterdir()) == ["desk", "empty", "local-single"]


@pytest.mark.parametrize("name", ["desk", "empty"])
def test_new_refuses_a_taken_name(checkout: Path, name: str) -> None:
    with pytest.raises(SparkserveError, match=f"{name} exists"):
        new.create(name)
    assert (checkout / "hosts/desk/fleet.nix").read_text() == "{ }"
    assert list((checkout / "hosts/empty").iterdir()) == []


def test_new_leaves_nothing_when_git_does_not_know_the_checkout(checkout: Path) -> None:
    with pytest.raises(SparkserveError) as caught:
        new.create("fresh")
    assert caught.value.id == "HOST.SYSTEM"
    assert not (checkout / "hosts/fresh").exists()


def test_new_tells_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(argv)
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    file = new.create("fresh")
    assert file == checkout / "hosts/fresh/fleet.nix"
    assert "fleet.nodes = [" in file.read_text()
    assert calls == [["git", "add", "--intent-to-add", "--", str(file)]]


def test_untracked_files_are_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "hosts/desk/fleet.nix\0hosts/desk/extra.nix\0"
    done = subprocess.CompletedProcess([], 0, listed, "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(SparkserveError) as caught:
        plans.evaluate("desk")
    assert caught.value.id == "FLEET.UNTRACKED"
    assert caught.value.found == "untracked hosts/desk/fleet.nix, hosts/desk/extra.nix"
    assert caught.value.do == "Run: git add -N hosts/desk"
