"""Locking: the same inputs give the same bytes, and what is below stays below."""

from __future__ import annotations

import datetime
import hashlib
from typing import TYPE_CHECKING

import pytest
from pins_values import TARGET_TOML, FolderStore, deb, pin, pin_list, wheel

from sparkserve.errors import SparkserveError
from sparkserve.pins import apt, lock, model, pip, resolver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DAY = datetime.date(2026, 1, 2)
LOWER = TARGET_TOML + '[wheels]\nrequest = ["one"]\nexclude = ["cut"]\n'
UPPER = 'above = ["lower"]' + TARGET_TOML + '[wheels]\nrequest = ["one", "two"]\nno_deps = ["alone==9.0"]\n'
DEBS = TARGET_TOML + '[debs]\nrequest = ["bb"]\nexclude = ["left-out"]\n'


class World:
    """Stands in for uv, pip and apt. `versions`: what uv resolves to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.versions = {"one": "1.0", "two": "2.0", "alone": "9.0"}
        self.downloads: list[str] = []
        self.asked: dict[str, Sequence[str]] = {}
        self.package = deb(root / "bb_1_amd64.deb", {"./bin/bb": b"ELF"})

    def write(self, name: str, text: str) -> None:
        (self.root / f"nix/profiles/{name}.toml").write_text(text)

    def resolve(
        self, target: object, requests: Sequence[str], *, constraints: Sequence[str], excludes: Sequence[str],
        preferred: Sequence[str], where: object,
    ) -> list[str]:  # fmt: skip
        self.asked = {"requests": requests, "constraints": constraints, "excludes": excludes}
        self.preferred = list(preferred)
        return [f"{name}=={self.versions[name]}" for name in requests]

    def download(self, target: object, exact: Sequence[str], base: Path, where: object) -> list[Path]:
        self.downloads += exact
        return [wheel(base, *text.split("==")) for text in exact]

    def packages(self) -> list[model.Pin]:
        kept = pin(self.package.read_bytes(), kind="deb", name="bb", version="1", file=self.package.name)
        return [kept]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    (tmp_path / "nix/profiles").mkdir(parents=True)
    FolderStore().install(monkeypatch)
    made = World(tmp_path)
    monkeypatch.setattr(pip, "places", lambda given: pip.Places())
    monkeypatch.setattr(pip, "download", made.download)
    monkeypatch.setattr(resolver, "resolve", made.resolve)

    class FakeApt:
        def resolve(self, requests: Sequence[str], without: Sequence[str]) -> list[model.Pin]:
            made.asked = {"debs": requests, "without": without}
            return made.packages()

    monkeypatch.setattr(apt, "opened", lambda suite, mirror: FakeApt())
    return made


def run(*names: str, dry_run: bool = False, today: datetime.date = DAY) -> dict[str, list[str]]:
    return {c.profile: c.lines for c in lock.lock(names, [], None, dry_run=dry_run, today=today)}


def test_a_profile_holds_only_what_those_under_it_lack_at_their_versions(world: World) -> None:
    world.write("lower", LOWER)
    world.write("upper", UPPER)
    changes = run("upper", "lower")
    assert changes == {
        "lower": ["+ wheel one 1.0"],
        "upper": ["+ wheel alone 9.0", "+ wheel two 2.0"],
    }
    assert [p.name for p in model.load("upper").pins] == ["alone", "two"]
    assert world.asked["constraints"] == ["one==1.0", "alone==9.0"]
    assert world.asked["excludes"] == ["cut"]


def test_a_second_lock_downloads_nothing_and_changes_only_the_date(world: World) -> None:
    world.write("lower", LOWER)
    run("lower")
    before = model.list_path("lower").read_text()
    assert run("lower", today=datetime.date(2027, 3, 4)) == {"lower": []}
    assert model.list_path("lower").read_text() == before.replace("2026-01-02", "2027-03-04")
    assert world.downloads == ["one==1.0"]


def test_a_dry_run_shows_changes_and_writes_no_list(world: World) -> None:
    world.write("lower", LOWER)
    run("lower")
    before = model.list_path("lower").read_bytes()
    world.versions["one"] = "1.1"
    assert run("lower", dry_run=True) == {"lower": ["~ wheel one 1.0 -> 1.1"]}
    assert model.list_path("lower").read_bytes() == before
    assert run("lower") == {"lower": ["~ wheel one 1.0 -> 1.1"]}


@pytest.mark.parametrize("broken", ["{", None])
def test_a_broken_list_is_cured_by_a_new_lock(world: World, broken: str | None) -> None:
    world.write("lower", LOWER)
    run("lower")
    before = model.list_path("lower").read_text()
    # Text that is no list, or a record whose hash nobody has: neither is taken over.
    one = model.load("lower").pins[0]
    model.list_path("lower").write_text(broken or before.replace(one.sha256, "0" * 64))
    run("lower")
    assert model.list_path("lower").read_text() == before


def test_debs_and_the_tree_from_one_of_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("debs", DEBS + '[[tree]]\nname = "bb"\ndeb = "bb"\nmember = "bin/bb"\n')
    monkeypatch.setattr(model.Pin, "path", property(lambda p: str(world.root / p.file)))
    FolderStore({str(world.package): b""}).install(monkeypatch)
    assert run("debs") == {"debs": ["+ deb bb 1", "+ tree bb 1"]}
    tree = model.load("debs").pins[1]
    assert (tree.file, tree.source, tree.member, tree.size) == ("bb", world.package.name, "bin/bb", 3)
    assert tree.sha256 == hashlib.sha256(b"ELF").hexdigest()
    assert world.asked["debs"] == ["bb"]


def test_debs_under_a_profile_are_forced_and_not_listed_again(world: World) -> None:
    world.write("debs", DEBS)
    run("debs")
    world.write("more", 'above = ["debs"]' + TARGET_TOML + '[debs]\nrequest = ["bb", "other"]\n')
    assert run("more") == {"more": []}
    assert world.asked == {"debs": ["bb=1", "other"], "without": ["left-out"]}


def test_a_tree_from_a_deb_that_is_not_there_is_refused(world: World) -> None:
    world.write("debs", DEBS + '[[tree]]\nname = "bb"\ndeb = "other"\nmember = "bin/bb"\n')
    with pytest.raises(SparkserveError) as caught:
        run("debs")
    assert caught.value.id == "PIN.PROFILE"
    assert "other" in caught.value.found
    assert not model.list_path("debs").exists()


def test_profiles_on_one_another_have_one_target(world: World) -> None:
    world.write("lower", LOWER.replace("2.36", "2.39"))
    world.write("upper", UPPER)
    with pytest.raises(SparkserveError) as caught:
        run("lower", "upper")
    assert caught.value.id == "PIN.PROFILE"
    assert "one target" in caught.value.expected


def test_all_kinds_of_change_are_named() -> None:
    old = pin_list(pin(name="gone"), pin(name="same"), pin(name="moved"), pin(name="other"))
    new = pin_list(pin(name="new"), pin(name="same"), pin(name="moved", version="2"), pin(b"x", name="other"))
    assert [move.line for move in lock._moves(old.pins, new.pins)] == [
        "- wheel gone 1.0",
        "~ wheel moved 1.0 -> 2",
        "+ wheel new 1.0",
        "~ wheel other 1.0: other content",
    ]


def test_an_update_of_one_package_prefers_the_versions_of_others(world: World) -> None:
    world.write("lower", TARGET_TOML + '[wheels]\nrequest = ["one", "two"]\n')
    run("lower")
    assert world.preferred == []
    world.versions["one"] = "1.1"
    [change] = lock.lock(["lower"], [], None, dry_run=False, today=DAY, only=["one"])
    assert world.preferred == ["two==2.0"]
    assert change.lines == ["~ wheel one 1.0 -> 1.1"]
