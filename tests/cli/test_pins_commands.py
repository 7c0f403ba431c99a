"""`sparkserve pins`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from sparkserve.cli.commands.pins import command
from sparkserve.errors import SparkserveError
from sparkserve.pins import check, fetch, lock, store
from sparkserve.pins.model import Pin

if TYPE_CHECKING:
    from pathlib import Path

PIN: dict[str, Any] = {
    "kind": "wheel", "name": "one", "version": "1.0", "file": "one-1.0-py3-none-any.whl",
    "sha256": "ab" * 32, "size": 1234567,
}  # fmt: skip
LIST: dict[str, Any] = {
    "schema": "sparkserve.pins/1",
    "profile": "some",
    "locked": "2026-01-02",
    "target": {"system": "x86_64-linux", "debian": "bookworm", "python": "3.11", "glibc": "2.36"},
    "pins": [PIN, PIN | {"name": "two", "file": "two-1.0-py3-none-any.whl"}],
}
TARGET_TOML = "[target]\n" + "".join(f'{key} = "{value}"\n' for key, value in LIST["target"].items())
PATHS = [store.fixed_path(f"{name}-1.0-py3-none-any.whl", "ab" * 32) for name in ("one", "two")]


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nix/pins").mkdir(parents=True)
    (tmp_path / "nix/profiles").mkdir(parents=True)
    (tmp_path / "nix/pins/some.json").write_text(json.dumps(LIST))
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def state(monkeypatch: pytest.MonkeyPatch, *, missing: set[str], damaged: set[str]) -> None:
    monkeypatch.setattr(store, "missing", lambda paths: missing)
    monkeypatch.setattr(store, "damaged", lambda paths: damaged & set(paths))
    monkeypatch.setattr(check, "size_in_store", lambda pin: 1234567)


@pytest.mark.parametrize(
    "name", ["lock", "fetch", "check", "list", "export", "import", "sbom", "audit", "update"]
)
def test_help_has_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"./sparkserve pins {name}" in result.stdout


def test_without_names_no_command_takes_what_is_on_request(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "nix/pins/spark.json").write_text(json.dumps(LIST | {"profile": "spark"}))
    (checkout / "nix/profiles/spark.toml").write_text("on_request = true\n" + TARGET_TOML)
    taken: list[list[str]] = []

    def take(profiles: list[str], *_: object, **__: object) -> int:
        taken.append(profiles)
        return 0

    monkeypatch.setattr(fetch, "fetch", take)
    monkeypatch.setattr(check, "check", take)
    monkeypatch.setattr(lock, "lock", lambda profiles, *_, **__: take(profiles) or [])
    for name in ("fetch", "check", "lock"):
        assert run(name).exit_code == 0
    assert taken == [["some"]] * 3
    assert run("fetch", "spark").exit_code == 0
    assert list(taken[-1]) == ["spark"]
    assert "spark" in run("list").stdout


def test_list_shows_every_pin_and_the_total() -> None:
    out = run("list").stdout
    assert "1,234,567" in out
    assert "2 pins" in out
    assert "2,469,134" in out
    shown = json.loads(run("list", "--json").stdout)
    assert shown == [LIST | {"pins": [each | {"requires": []} for each in LIST["pins"]]}]


def test_check_says_how_many_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    state(monkeypatch, missing=set(), damaged=set())
    result = run("check", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"ok": True, "pins": 2})


def test_check_names_a_list_with_a_wrong_size(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state(monkeypatch, missing=set(), damaged=set())
    monkeypatch.setattr(check, "size_in_store", lambda pin: 9)
    error = run("check", "some").exception
    assert isinstance(error, SparkserveError)
    assert (error.id, error.where) == ("PIN.PROFILE", str(checkout / "nix/pins/some.json"))
    assert "git restore nix/pins/some.json" in error.do


def test_check_names_every_missing_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    state(monkeypatch, missing=set(PATHS), damaged=set())
    error = run("check", "some").exception
    assert isinstance(error, SparkserveError)
    assert (error.id, error.exit_code) == ("PIN.MISSING", 20)
    assert "one-1.0" in error.found
    assert "two-1.0" in error.found
    assert "pins fetch some" in error.do


def test_check_puts_damage_first_and_names_what_is_missing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    state(monkeypatch, missing={PATHS[0]}, damaged={PATHS[1]})
    error = run("check").exception
    assert isinstance(error, SparkserveError)
    assert (error.id, error.exit_code) == ("PIN.HASH", 21)
    assert PATHS[1] in error.found
    assert "one-1.0" in error.found


def test_a_profile_that_has_no_list_is_refused() -> None:
    for name in ("fetch", "check", "list"):
        error = run(name, "typo").exception
        assert isinstance(error, SparkserveError)
        assert error.exit_code == 24


def test_from_takes_a_folder_or_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(fetch, "fetch", lambda *arguments: seen.append(arguments) or 2_500_000)  # type: ignore[func-returns-value]
    result = run(
        "fetch", "--from", str(tmp_path), "--from", "https://index.example/simple", "--mirror", "http://m"
    )
    assert result.exit_code == 0
    assert "2.5 MB" in result.output
    assert seen == [(["some"], (str(tmp_path), "https://index.example/simple"), "http://m")]
    assert run("fetch", "--from", str(tmp_path / "typo")).exit_code == 2


def test_lock_shows_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def locking(names: object, *_: object, dry_run: bool, today: object) -> list[lock.Change]:
        seen.append((names, dry_run))
        x = Pin(**PIN | {"kind": "deb", "name": "[x]", "version": "1"})
        moves = [lock.Move(None, Pin(**PIN)), lock.Move(x, x.model_copy(update={"version": "2"}))]
        return [lock.Change("some", moves)]

    monkeypatch.setattr(lock, "lock", locking)
    result = run("lock", "some", "--dry-run")
    assert seen == [(("some",), True)]
    assert "some: 2 changes" in result.output
    assert "~ deb [x] 1 -> 2" in result.output
    assert "No list was written" in result.output
    value = json.loads(run("lock", "some", "--dry-run", "--json").stdout)
    assert value == {"written": False, "changes": {"some": ["+ wheel one 1.0", "~ deb [x] 1 -> 2"]}}
    assert json.loads(run("lock", "--json", "some").stdout)["written"] is True
