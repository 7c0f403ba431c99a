"""`pins update`: which profiles it takes, what it holds, and what it says of a wheel that moved."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from pins_values import TARGET_TOML, pin, pin_list

from sparkserve.adapters import fingerprint, registry
from sparkserve.cli.commands.pins import command
from sparkserve.errors import SparkserveError
from sparkserve.pins import lock, model, store, update

if TYPE_CHECKING:
    from sparkserve.pins.model import Pin

STATE = "sglang/srt/distributed/parallel_state.py"
HOOKS = "sglang/srt/plugins/hook_registry.py"
PLUGINS = "sglang/srt/plugins/__init__.py"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(store, "STORE", str(tmp_path / "store"))
    for name in ("nix/pins", "nix/profiles", "store"):
        (tmp_path / name).mkdir(parents=True)
    model.save(pin_list(pin(name="click"), pin(name="jinja2"), profile="harness"))
    model.save(pin_list(pin(name="sglang"), profile="engine"))
    model.save(pin_list(pin(name="sglang"), pin(name="b12x"), profile="spark"))
    (tmp_path / "nix/profiles/spark.toml").write_text("on_request = true\n" + TARGET_TOML)
    return tmp_path


def sglang(
    version: str, members: dict[str, str], *, requires: tuple[str, ...] = (), there: bool = True
) -> Pin:
    """A wheel of these members, in the store if `there`."""
    file = Path(store.STORE) / "made.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    made = pin(file.read_bytes(), name="sglang", version=version, requires=requires)
    if there:
        file.rename(made.path)
    return made


def states(move: lock.Move) -> dict[str, str]:
    return {target.name: target.module for target in update.targets(move)}


def test_the_profiles_that_have_a_package_but_those_on_request() -> None:
    assert update.profiles(["jinja2"]) == ["harness"]
    assert update.profiles(["jinja2", "sglang"]) == ["engine", "harness"]
    assert update.profiles([]) == ["engine", "harness"]


@pytest.mark.parametrize(("package", "do"), [("typo", "pins list"), ("b12x", "pins lock spark")])
def test_a_package_of_no_usual_profile_is_refused(package: str, do: str) -> None:
    with pytest.raises(SparkserveError) as caught:
        update.profiles(["jinja2", package])
    assert caught.value.id == "PIN.PROFILE"
    assert package in caught.value.found
    assert do in caught.value.do


def test_a_module_that_adapters_rely_on_is_compared() -> None:
    before = {STATE: "a", HOOKS: "b", PLUGINS: "c"}
    move = lock.Move(sglang("1.0", before), sglang("2.0", before | {STATE: "other"}))
    changed = {name for name, state in states(move).items() if state == "changed"}
    assert changed == {name for name in states(move) if ".parallel_state." in name}
    assert {state for name, state in states(move).items() if name not in changed} == {"same"}
    assert states(move).keys() == fingerprint.targets(registry.declarations()).keys()


def test_a_wheel_of_before_that_is_not_there_is_not_taken_for_equal() -> None:
    wheel = {STATE: "a"}
    assert set(states(lock.Move(sglang("1.0", wheel, there=False), sglang("2.0", wheel))).values()) == {
        "not compared"
    }
    assert set(states(lock.Move(sglang("1.1", wheel), sglang("2.1", {}))).values()) == {"gone"}
    assert states(lock.Move(pin(), pin(name="one", version="2"))) == {}


def test_it_shows_versions_sizes_needs_and_targets(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = sglang("1.0", {STATE: "a"}, requires=("torch==2.13", "numpy"))
    new = sglang("2.0", {STATE: "longer"}, requires=("torch==2.14", "numpy"))
    seen: list[object] = []

    def locking(names: object, *_: object, only: object, **__: object) -> list[lock.Change]:
        seen.append((names, only))
        return [lock.Change("engine", [lock.Move(old, new)])]

    monkeypatch.setattr(lock, "lock", locking)
    out = CliRunner().invoke(command, ["update", "sglang", "--dry-run"]).output
    assert seen == [(["engine"], ("sglang",))]
    assert f"~ wheel sglang 1.0 -> 2.0   {old.size:,} -> {new.size:,} bytes ({new.size - old.size:+,})" in out
    assert "- needs torch==2.13\n" in out
    assert "+ needs torch==2.14\n" in out
    assert "numpy" not in out
    assert "parallel_state.GroupCoordinator.all_reduce: module changed; oneshot-collectives rely on it" in out
    assert "spark (./sparkserve pins lock NAME)" in out
    assert "No list was written" in out
    value = json.loads(CliRunner().invoke(command, ["update", "sglang", "--json"]).stdout)
    [shown] = value["changes"]["engine"]
    assert (value["written"], value["left_out"], shown["old"], shown["new"]) == (
        True,
        ["spark"],
        "1.0",
        "2.0",
    )
    assert shown["requires_added"] == ["torch==2.14"]
