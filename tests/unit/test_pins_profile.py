"""Profiles: a mistake in one is a sentence that names the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pins_values import TARGET, TARGET_TOML

from sparkserve.errors import SparkserveError
from sparkserve.pins import profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    (tmp_path / "nix/profiles").mkdir(parents=True)

    def write_one(name: str, text: str) -> None:
        (tmp_path / f"nix/profiles/{name}.toml").write_text(text)

    return write_one


def refused(name: str) -> SparkserveError:
    with pytest.raises(SparkserveError) as caught:
        profile.load(name)
    assert caught.value.id == "PIN.PROFILE"
    assert caught.value.where == f"nix/profiles/{name}.toml"
    return caught.value


def test_a_profile_is_read(write: Callable[[str, str], None]) -> None:
    write(
        "one",
        'above = ["zero"]' + TARGET_TOML + '[wheels]\nrequest = ["click"]\nno_deps = ["sglang==0.5.23"]\n',
    )
    read = profile.load("one")
    assert read.target == TARGET
    assert read.above == ("zero",)
    assert read.wheels.no_deps == ("sglang==0.5.23",)
    assert read.debs.request == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[target", "does not parse"),
        ("", "target: Field required"),
        (TARGET_TOML.replace("3.11", "2.7"), "target.python"),
        (TARGET_TOML.replace("x86_64-linux", "riscv64-linux"), "target.system"),
        (TARGET_TOML + '[wheels]\nrequests = ["click"]\n', "wheels.requests"),
        (TARGET_TOML + '[wheels]\nrequest = "click"\n', "wheels.request"),
        (TARGET_TOML + '[wheels.request]\nclick = ""\n', "wheels.request: Value error, neither a list"),
        (TARGET_TOML + '[wheels.no_deps]\n"sglang>=0.5" = "serves"\n', "sglang>=0.5"),
        (
            TARGET_TOML + '[wheels.request]\n"typer>=1" = "a"\n[wheels.exclude]\ntyper = "b"\n',
            "at once: typer",
        ),
        (TARGET_TOML + '[wheels]\nno_deps = ["sglang>=0.5"]\n', "sglang>=0.5"),
        (TARGET_TOML + "[wheels]\nno_deps = [\"sglang==0.5; python_version=='3.11'\"]\n", "sglang==0.5;"),
        (TARGET_TOML + '[wheels]\nrequest = ["typer>=1"]\nexclude = ["typer"]\n', "excluded at once: typer"),
        (TARGET_TOML + '[debs]\nrequest = ["dpkg"]\nexclude = ["dpkg"]\n', "excluded at once: dpkg"),
        (TARGET_TOML + '[[tree]]\nname = "busybox"\n', "tree.0.deb"),
    ],
)
def test_a_mistake_is_named(write: Callable[[str, str], None], text: str, found: str) -> None:
    write("one", text)
    assert found in refused("one").found


def test_an_unknown_profile_is_refused_with_the_known_ones(write: Callable[[str, str], None]) -> None:
    write("one", TARGET_TOML)
    assert "one" in refused("two").do


def test_names_may_have_their_reasons(write: Callable[[str, str], None]) -> None:
    write(
        "one",
        TARGET_TOML + '[wheels.request]\nclick = "parses"\n"rich>=1" = "prints"\n'
        '[wheels.no_deps]\n"sglang==0.5.23" = "serves"\n[debs.exclude]\nmawk = "scripts alone call it"\n',
    )
    read = profile.load("one")
    assert list(read.wheels.request) == ["click", "rich>=1"]
    assert read.wheels.no_deps == {"sglang==0.5.23": "serves"}
    assert read.debs.exclude == {"mawk": "scripts alone call it"}


def test_a_profile_on_request_is_taken_by_no_command_without_names(write: Callable[[str, str], None]) -> None:
    write("one", TARGET_TOML)
    write("spark", "on_request = true" + TARGET_TOML)
    assert profile.usual() == ["one"]
    assert profile.names() == ["one", "spark"]


def test_a_profile_comes_after_those_it_is_above(write: Callable[[str, str], None]) -> None:
    write("a", 'above = ["c"]' + TARGET_TOML)
    write("b", TARGET_TOML)
    write("c", 'above = ["b"]' + TARGET_TOML)
    assert profile.in_order(["a", "b", "c"]) == ["b", "c", "a"]
    assert profile.in_order(["a", "b"]) == ["b", "a"]


def test_an_order_for_an_unknown_profile_is_refused(write: Callable[[str, str], None]) -> None:
    write("a", TARGET_TOML)
    with pytest.raises(SparkserveError) as caught:
        profile.in_order(["a", "typo"])
    assert caught.value.id == "PIN.PROFILE"


def test_a_circle_is_refused(write: Callable[[str, str], None]) -> None:
    write("a", 'above = ["b"]' + TARGET_TOML)
    write("b", 'above = ["a"]' + TARGET_TOML)
    with pytest.raises(SparkserveError) as caught:
        profile.in_order(["a"])
    assert caught.value.id == "PIN.PROFILE"
    assert "circle" in caught.value.found
