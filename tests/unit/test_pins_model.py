"""Pin lists: read strictly, written whole, and the committed ones are as this program writes them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from pins_values import pin, pin_list

from sparkserve.errors import SparkserveError
from sparkserve.pins import check, model, profile

REPOSITORY = Path(__file__).parents[2]
LISTS = sorted((REPOSITORY / "nix/pins").glob("*.json"))


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nix/pins").mkdir(parents=True)
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    return tmp_path


def tree() -> model.Pin:
    return pin(kind="tree", name="bb", file="bb", source="d_1_amd64.deb", member="bin/bb")


def test_what_is_saved_is_what_is_loaded() -> None:
    pins = pin_list(
        pin(kind="deb", name="d", version="1"), tree(), pin(requires=("two>=1; python_version<'4'",))
    )
    model.save(pins)
    assert model.load("some") == pins
    assert json.loads(model.list_path("some").read_text())["pins"][1]["from"] == "d_1_amd64.deb"


@pytest.mark.parametrize("step", ["write_text", "replace"])
def test_a_failure_while_writing_leaves_the_old_list(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model.save(pin_list(pin()))
    before = model.list_path("some").read_bytes()

    def full(self: Path, _: object) -> int:
        with self.open("w") as file:
            file.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, step, full)
    with pytest.raises(OSError, match="No space"):
        model.save(pin_list(pin(version="2.0")))
    assert model.list_path("some").read_bytes() == before
    assert os.listdir(model.list_path("some").parent) == ["some.json"]  # noqa: PTH208 - hidden ones too


def text(*more: dict[str, object], **changes: object) -> str:
    value = json.loads(model.dump(pin_list(pin())))
    value["pins"][0] |= changes
    return json.dumps(value | {"pins": [*value["pins"], *more]})


TREE: dict[str, object] = {
    "kind": "tree", "name": "bb", "version": "1", "file": "bb", "sha256": "0" * 64, "size": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("{", "Invalid JSON"),
        (text(sha256="xyz"), "pins.0.sha256"),
        (text(size="many"), "pins.0.size"),
        (text(colour="red"), "pins.0.colour"),
        (text(kind="rpm"), "pins.0.kind"),
        (text(file="../../evil"), "pins.0.file"),
        (text(file=".one-1.0-py3-none-any.whl"), "pins.0.file"),
        (text(name="two"), "two 1.0 with one-1.0-py3-none-any.whl"),
        (text(version="1.1"), "one 1.1 with one-1.0-py3-none-any.whl"),
        (text(version="1.0+cpu"), "one 1.0+cpu with one-1.0"),
        (text(kind="deb", file="one_2_amd64.deb"), "one 1.0 with one_2_amd64.deb"),
        (text(TREE | {"from": "other.deb", "member": "bin/bb"}, kind="deb"), "the tree bb without a deb"),
        (text(TREE | {"from": pin().file}, kind="deb"), "the tree bb without a deb"),
        (text().replace("sparkserve.pins/1", "sparkserve.pins/2"), "schema"),
    ],
)
def test_a_wrong_list_is_refused_with_the_place(content: str, found: str) -> None:
    model.list_path("some").write_text(content)
    with pytest.raises(SparkserveError) as caught:
        model.load("some")
    assert caught.value.id == "PIN.PROFILE"
    assert found in caught.value.found
    assert caught.value.do == "Run: git restore nix/pins/some.json, or: ./sparkserve pins lock some."


@pytest.mark.parametrize(
    ("name", "version", "file"),
    [
        ("a-b", "2025.7", "A_b-2025.07.0-py3-none-any.whl"),
        ("a-b", "1!2.0", "a_b-1-2.0-py3-none-any.whl"),
        ("torch", "2.13.0+cpu", "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"),
    ],
)
def test_a_file_may_spell_name_and_version_as_it_does(name: str, version: str, file: str) -> None:
    model.save(pin_list(pin(name=name, version=version, file=file)))
    assert model.load("some").pins[0].file == file


def test_a_missing_list_is_refused_with_those_that_are_there() -> None:
    model.save(pin_list(pin(), profile="other"))
    with pytest.raises(SparkserveError) as caught:
        model.load("some")
    assert caught.value.id == "PIN.PROFILE"
    assert "other" in caught.value.do


def test_a_profile_without_a_list_is_not_passed_over(checkout: Path) -> None:
    (checkout / "nix/profiles").mkdir()
    (checkout / "nix/profiles/oci.toml").write_text("")
    with pytest.raises(SparkserveError) as caught:
        check.check(model.known())
    assert (caught.value.id, caught.value.expected) == ("PIN.PROFILE", "the pin list of oci")


def test_there_is_a_list_for_every_profile() -> None:
    assert [path.stem for path in LISTS] == sorted(
        p.stem for p in (REPOSITORY / "nix/profiles").glob("*.toml")
    )


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_committed_list_is_as_lock_writes_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    pins = model.load(path.stem)
    assert model.dump(pins) == path.read_text()
    keys = [(p.kind, p.name) for p in pins.pins]
    assert keys == sorted(set(keys))
    assert all(p.file == model.clean_name(p.file) for p in pins.pins)
    wanted = profile.load(path.stem)
    assert pins.target == wanted.target
    below = {(p.kind, p.name) for name in wanted.above for p in model.load(name).pins}
    assert not below & set(keys)
    left_out = {("deb", name) for name in wanted.debs.exclude} | {
        ("wheel", name) for name in wanted.wheels.exclude
    }
    assert not left_out & set(keys)
    # Where files come from is the machine's affair.
    assert not re.search(r"https?:|/opt/|/work|/home", path.read_text())


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_wheel_that_is_left_out_would_else_be_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    wanted = profile.load(path.stem)
    pins = [
        pin for name in (path.stem, *wanted.above) for pin in model.load(name).pins if pin.kind == "wheel"
    ]
    needed = {model.normal(re.split(r"[^\w.-]", text)[0]) for pin in pins for text in pin.requires}
    assert {model.normal(name) for name in wanted.wheels.exclude} <= needed


def test_the_root_of_a_spark_gives_a_reason_for_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    spark = profile.load("engine-gb10")
    lists = (spark.debs.request, spark.debs.exclude, spark.wheels.request, spark.wheels.exclude)
    assert all(isinstance(names, dict) for names in lists)
    assert "engine-gb10" not in profile.usual()
    files = [pin.file for pin in model.load("engine-gb10").pins]
    machines = {word for file in files for word in re.findall(r"x86_64|amd64|aarch64|arm64", file)}
    assert machines == {"aarch64", "arm64"}


def test_the_compilers_of_a_spark_are_of_the_version_of_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    versions = {pin.name: pin.version for pin in model.load("engine-gb10").pins}
    parts = ("nvcc", "crt", "cccl", "runtime", "nvrtc")
    toolkit = [versions[f"nvidia-cuda-{part}"] for part in parts] + [versions["nvidia-nvvm"]]
    assert {version.rpartition(".")[0] for version in toolkit} == {"13.0"}
