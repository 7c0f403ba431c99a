"""Wheels: what is read from one, what pip is asked for, and what is said when there is none."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pins_values import SPARK, TARGET, wheel

from sparkserve.errors import SparkserveError
from sparkserve.pins import pip, processes, resolver, wheels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.pins.model import Target


def test_a_wheel_tells_its_name_version_and_requirements_without_extras(tmp_path: Path) -> None:
    requires = ["two>=1", 'three; python_version < "3.12"', 'four; extra == "dev"', "five ; extra=='dev'"]
    file = wheel(tmp_path, "Some.Name", "1.0", requires)
    pin = wheels.read(file)
    assert (pin.kind, pin.name, pin.version, pin.file) == ("wheel", "some-name", "1.0", file.name)
    assert pin.requires == ("two>=1", 'three; python_version < "3.12"')
    assert pin.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert pin.size == file.stat().st_size


def test_pip_is_asked_for_the_target_and_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "_pip", lambda: ["pip"])
    where = pip.Places(find_links=("/wheels",), indexes=("https://index.example/simple",))
    argv = pip.command(TARGET, ["one==1.0"], Path("/to"), where)
    assert " ".join(argv[:5]) == "pip download --no-deps --only-binary :all:"
    assert " ".join(argv).count("--python-version 3.11 --implementation cp") == 1
    tags = [argv[i + 1] for i, word in enumerate(argv) if word == "--platform"]
    assert tags[0] == "manylinux_2_36_x86_64"
    assert {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_5_x86_64", "linux_x86_64"} <= set(
        tags
    )
    assert "manylinux_2_37_x86_64" not in tags
    assert argv[-5:] == [
        "--find-links", "/wheels", "--extra-index-url", "https://index.example/simple", "one==1.0",
    ]  # fmt: skip


def test_a_spark_gets_wheels_for_its_own_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "_pip", lambda: ["pip"])
    argv = pip.command(SPARK, ["one==1.0"], Path("/to"), pip.Places())
    tags = [argv[i + 1] for i, word in enumerate(argv) if word == "--platform"]
    assert tags[0] == "manylinux_2_36_aarch64"
    assert tags[-3:] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "linux_aarch64"]
    assert len(tags) == 22
    assert all(tag.endswith("_aarch64") for tag in tags)


CONFIG = """:env:.find-links='/from/env'
:env:.cert='/certs.pem'
global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'
global.find-links='/from/file'
install.no-index='not for downloads'
"""


def test_places_are_those_of_pips_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "_pip", lambda: ["pip"])
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 0, CONFIG, ""))
    found = pip.places([str(tmp_path), "https://given.example/simple"])
    assert found.find_links == (str(tmp_path), "/from/env")
    assert found.indexes == (
        "https://given.example/simple", "https://a.example/simple", "https://b.example/simple",
    )  # fmt: skip
    assert found.settings["cert"] == "/certs.pem"
    assert "no-index" not in found.settings


ABSENT = "ERROR: No matching distribution found for torch==2.13.0+cpu"
CUT_OFF = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewError('<a.B object at 0x7f>: "
    "Failed to establish a new connection')': /simple/click/\n"
    "ERROR: No matching distribution found for click==8"
)


@pytest.mark.parametrize(
    ("stderr", "absent", "found", "do"),
    [
        (ABSENT, True, "none", "PyTorch runs an index for its CPU builds"),
        (ABSENT.replace("torch==2.13.0+cpu", "click==8"), True, "none", "--from"),
        (CUT_OFF, False, "Failed to establish a new connection", "Check the network"),
        ("ERROR: 403 Client Error", False, "403", "Check the network"),
    ],
)
def test_a_failed_download_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, absent: bool, found: str, do: str
) -> None:
    def fail(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(list(argv), 1, "", stderr)

    monkeypatch.setattr(pip, "_pip", lambda: ["pip"])
    monkeypatch.setattr(processes, "run", fail)
    with pytest.raises(SparkserveError) as caught:
        pip.download(TARGET, ["one==1.0"], tmp_path, pip.Places())
    assert caught.value.id == "PIN.FETCH"
    assert isinstance(caught.value, pip.AbsentError) == absent
    assert found in caught.value.found
    assert do in caught.value.do


def test_a_constraint_of_the_machine_does_not_stand_against_a_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, str] = {}

    def run(argv: Sequence[str], *, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        given.update(env)
        return subprocess.CompletedProcess(list(argv), 0, "", "")

    monkeypatch.setattr(pip, "_pip", lambda: ["pip"])
    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setenv("PIP_CONSTRAINT", "/etc/constraints.txt")
    pip.download(TARGET, ["torch==2.13.0"], tmp_path, pip.Places())
    assert given["PIP_CONSTRAINT"] == "/dev/null"


def test_a_python_without_pip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SparkserveError) as caught:
        pip.places([])
    assert caught.value.id == "HOST.SYSTEM"


@pytest.mark.parametrize(
    ("target", "platform"), [(TARGET, "x86_64-manylinux_2_36"), (SPARK, "aarch64-manylinux_2_36")]
)
def test_uv_is_asked_for_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target, platform: str
) -> None:
    asked: dict[str, object] = {}

    def run(argv: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        files = {
            name: Path(argv[argv.index(name) + 1]).read_text() for name in ("--constraints", "--excludes")
        }
        asked.update(argv=argv, **options, **files)
        return subprocess.CompletedProcess(argv, 0, "one==1.0\ntorch==2.13.0+cpu\n", "")

    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr("uv.find_uv_bin", lambda: "uv")
    monkeypatch.setattr(subprocess, "run", run)
    where = pip.Places(find_links=("/wheels",), settings={"no-index": "true"})
    exact = resolver.resolve(
        target, ["one", "torch"], constraints=["two==2"], excludes=["typer"], where=where
    )
    assert exact == ["one==1.0", "torch==2.13.0+cpu"]
    line = " ".join(str(word) for word in asked["argv"])  # type: ignore[attr-defined]
    for words in (
        f"--python-platform {platform}", "--python-version 3.11", "--no-build",
        "--find-links /wheels", "--no-python-downloads", "--no-index",
    ):  # fmt: skip
        assert words in line
    assert (asked["input"], asked["--constraints"], asked["--excludes"]) == (
        "one\ntorch",
        "two==2\n",
        "typer\n",
    )
