"""Names of fleets, and making one, without git or Nix."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sparkserve import nix
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


def test_a_missing_git_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkserveError) as caught:
        plans.evaluate("desk")
    assert (caught.value.id, caught.value.where) == ("HOST.SYSTEM", "git")
    assert "apt-get install git" in caught.value.do


@pytest.mark.parametrize(
    ("error", "sound", "id", "where"),
    [
        ("NIX.EVAL", True, "FLEET.EVAL", "hosts/desk/fleet.nix"),
        ("NIX.EVAL", False, "NIX.EVAL", "this fleet's attribute"),
        ("HOST.DISK", True, "HOST.DISK", "this fleet's attribute"),
    ],
)
def test_the_file_of_the_fleet_is_blamed_when_all_else_is_sound(
    error: str, sound: bool, id: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluated(attribute: str, apply: str | None = None) -> list[str]:
        if apply and sound:
            return ["desk"]
        raise SparkserveError(error, expected="", found="gone.nix", where="this fleet's attribute", do="")

    monkeypatch.setattr(names, "require_tracked", lambda name: None)
    monkeypatch.setattr(nix, "eval_json", evaluated)
    with pytest.raises(SparkserveError) as caught:
        plans.evaluate("desk")
    assert (caught.value.id, caught.value.where) == (id, where)


@pytest.mark.parametrize(("given", "own"), [("foo", 0), ("-1", 0), ("", 0), ("2", 2)])
def test_settings_of_git_are_added_to_the_callers(
    given: str, own: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", given)
    environment = nix.environment()
    assert environment["GIT_CONFIG_COUNT"] == str(own + 1)
    assert environment[f"GIT_CONFIG_KEY_{own}"] == "safe.directory"
