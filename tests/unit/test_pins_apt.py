"""apt works in a root of its own, with the mirror and the key that the machine has."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from pins_values import SPARK, TARGET

from sparkserve.errors import SparkserveError
from sparkserve.pins import apt, processes, sources
from sparkserve.pins.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PLAN = """Inst gcc-12-base (12.2.0-14 Debian:12.9/oldstable [amd64])
Inst libattr1 (1:2.5.1-4 Debian:12.9/oldstable [amd64])
Conf libattr1 (1:2.5.1-4 Debian:12.9/oldstable [amd64])
"""
SHOWN = f"""Package: libattr1
Version: 1:2.5.1-4
Architecture: amd64
Pre-Depends: libc6 (>= 2.4)
Depends: one, two (>= 3) | three
Description: text
 Depends: not a field
Size: 22164
SHA256: {"0" * 64}

Package: gcc-12-base
Version: 12.2.0-14~x
Architecture: all
Size: 5
SHA256: {"1" * 64}

"""

Calls = list[list[str]]


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Calls]:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(sources, "debian", lambda: Source("http://mirror.example/debian", "/key.gpg"))

    def set_answers(**by_word: tuple[int, str, str]) -> Calls:
        calls: Calls = []

        def run(argv: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
            calls.append(list(argv))
            return subprocess.CompletedProcess(list(argv), *by_word.get(argv[3], (0, "", "")))

        monkeypatch.setattr(processes, "run", run)
        return calls

    return set_answers


def test_packages_are_resolved_with_the_hashes_of_the_index(answers: Callable[..., Calls]) -> None:
    calls = answers(install=(0, PLAN, ""), show=(0, SHOWN, ""))
    pins = apt.opened(TARGET, None).resolve(["libattr1"])
    assert [(p.name, p.version, p.file, p.size, p.sha256[0]) for p in pins] == [
        ("gcc-12-base", "12.2.0-14~x", "gcc-12-base_12.2.0-14-x_all.deb", 5, "1"),
        ("libattr1", "1:2.5.1-4", "libattr1_1-2.5.1-4_amd64.deb", 22164, "0"),
    ]
    assert pins[1].requires == ("libc6 (>= 2.4)", "one", "two (>= 3) | three")
    assert calls[-1][5:] == ["gcc-12-base=12.2.0-14", "libattr1=1:2.5.1-4"]
    assert all(call[1] == "-c" for call in calls)


def test_what_is_left_out_counts_as_installed(answers: Callable[..., Calls], tmp_path: Path) -> None:
    virtual = SHOWN.replace("Package: libattr1\n", "Package: libattr1\nProvides: three\n")
    virtual = virtual.replace(
        "Package: gcc-12-base\n", "Package: mawk\nProvides: awk, one (= 1)\nDepends: far\n"
    )
    answers(install=(0, PLAN, ""), show=(0, virtual, ""))
    apt.opened(TARGET, None).resolve(["libattr1"], ["mawk", "libattr1"])
    status = (tmp_path / ".sparkserve/apt/bookworm-amd64/var/lib/dpkg/status").read_text()
    assert "Package: mawk\n" in status and "Provides: awk, one (= 1)\n" in status
    # Without its needs, or apt would find the installation broken.
    assert "far" not in status


def test_leaving_out_what_nothing_needs_is_refused(answers: Callable[..., Calls]) -> None:
    answers(install=(0, PLAN, ""), show=(0, SHOWN, ""))
    with pytest.raises(SparkserveError) as caught:
        apt.opened(TARGET, None).resolve(["libattr1"], ["gcc-12-base"])
    assert caught.value.id == "PIN.RESOLVE"
    assert "gcc-12-base" in caught.value.found


def test_the_root_is_private_and_has_only_main(answers: Callable[..., Calls], tmp_path: Path) -> None:
    answers()
    root = apt.opened(TARGET, None).root
    assert apt.opened(TARGET.model_copy(update={"debian": "trixie"}), None).root != root
    assert root == tmp_path / ".sparkserve/apt/bookworm-amd64"
    source = (root / "etc/sources/debian.sources").read_text()
    assert "URIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n" in source
    assert "Signed-By: /key.gpg\n" in source
    conf = (root / "apt.conf").read_text()
    assert f'Dir "{root}";' in conf
    assert 'APT::Architectures { "amd64"; };' in conf


def test_packages_are_those_of_the_target_and_not_of_this_machine(answers: Callable[..., Calls]) -> None:
    answers()
    here, spark = (apt.opened(target, None).root for target in (TARGET, SPARK))
    assert here != spark
    conf = (spark / "apt.conf").read_text()
    assert 'APT::Architecture "arm64";' in conf
    assert 'APT::Architectures { "arm64"; };' in conf
    assert f'Dir "{spark}";' in conf


def test_a_mirror_can_be_named(
    answers: Callable[..., Calls], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers()
    key = tmp_path / "archive.gpg"
    monkeypatch.setattr(sources, "KEYRING", key)
    with pytest.raises(SparkserveError) as caught:
        apt.opened(TARGET, "http://other.example/debian")
    assert "debian-archive-keyring" in caught.value.do
    key.touch()
    root = apt.opened(TARGET, "http://other.example/debian").root
    assert f"Signed-By: {key}" in (root / "etc/sources/debian.sources").read_text()


def test_a_machine_without_debian_is_told_of_the_option(
    answers: Callable[..., Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers()
    monkeypatch.setattr(sources, "debian", lambda: None)
    with pytest.raises(SparkserveError) as caught:
        apt.opened(TARGET, None)
    assert caught.value.id == "PIN.FETCH"
    assert "--mirror URI" in caught.value.do
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SparkserveError, match="no apt-get"):
        apt.opened(TARGET, None)


@pytest.mark.parametrize(
    ("word", "stderr", "id", "do"),
    [
        ("update", "E: Could not connect", "PIN.FETCH", "Check the mirror"),
        ("install", "E: Unable to locate package typo", "PIN.RESOLVE", "Correct the names"),
        ("download", "E: Version '1' for 'one' was not found", "PIN.FETCH", "archive of that day"),
    ],
)
def test_apts_complaint_is_passed_on(
    answers: Callable[..., Calls], tmp_path: Path, word: str, stderr: str, id: str, do: str
) -> None:
    answers(**{word: (100, "", stderr)})
    with pytest.raises(SparkserveError) as caught:
        root = apt.opened(TARGET, None)
        root.download([], tmp_path)
        root.resolve(["typo"])
    assert caught.value.id == id
    assert stderr in caught.value.found
    assert do in caught.value.do
