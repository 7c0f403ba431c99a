"""`host prepare` on a machine in a folder: it sees what is missing, does only that, and can be resumed."""

from __future__ import annotations

import grp
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from sparkserve.errors import SparkserveError
from sparkserve.host import prepare
from sparkserve.host.system import System

if TYPE_CHECKING:
    from pathlib import Path


class Machine:
    """A fresh machine; what it runs happens below `root`. `broken` is a program that fails."""

    def __init__(self, root: Path) -> None:
        self.root, self.broken, self.ran = root, "", list[str]()
        (root / "run/systemd/system").mkdir(parents=True)

    @property
    def system(self) -> System:
        return System(self.root, self.run, "spark-0")

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        self.ran.append(argv[0])
        if argv[0] == self.broken:
            return subprocess.CompletedProcess(argv, 100, "", "E: Unable to locate package\n")
        paths = [self.root / word.lstrip("/") for word in argv if word.startswith("/")]
        match argv[0]:
            case "apt-get":
                paths = [self.root / f"usr/bin/{name}" for name in prepare.PROGRAMS]
                for path in paths:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
            case "mkdir":
                for path in paths:
                    path.mkdir(parents=True, exist_ok=True)
            case "ln":
                paths[1].parent.mkdir(parents=True, exist_ok=True)
                paths[1].symlink_to(paths[0])
            case "sh":
                paths[0].parent.mkdir(parents=True, exist_ok=True)
                with paths[0].open("a") as file:
                    file.write(f"\n{argv[-1]}\n")
        return subprocess.CompletedProcess(argv, 0, "", "")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(prepare, "SPACE_GIB", 0)

    def no_group(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(grp, "getgrnam", no_group)
    return Machine(tmp_path)


def to_do(machine: Machine, node: str | None = None) -> list[str]:
    return [step.name for step in prepare.steps(machine.system, node) if not step.done]


def test_a_fresh_machine_is_prepared_once(machine: Machine) -> None:
    assert to_do(machine) == ["nix", "path", "settings", "folders"]
    assert machine.ran == []
    said: list[str] = []
    prepare.apply(machine.system, "spark-0", lambda step: said.append(step.name))
    assert to_do(machine) == []
    assert said == ["systemd", "name", "nix", "path", "settings", "folders", "space"]
    assert "build-users-group =" in machine.system.at(prepare.NIX_CONF).read_text()
    assert machine.system.at("/nix/var/nix/gcroots/sparkserve").is_dir()
    machine.ran.clear()
    prepare.apply(machine.system, "spark-0", lambda step: None)
    assert machine.ran == []


def test_it_goes_on_after_a_failure(machine: Machine) -> None:
    machine.broken = "apt-get"
    with pytest.raises(SparkserveError, match="apt-get says: E: Unable to locate package") as caught:
        prepare.apply(machine.system, None, lambda step: None)
    assert caught.value.id == "HOST.SYSTEM"
    assert to_do(machine) == ["nix", "path", "settings", "folders"]
    machine.broken = ""
    prepare.apply(machine.system, None, lambda step: None)
    assert to_do(machine) == []


def test_nix_of_its_own_installer_comes_to_every_path(machine: Machine) -> None:
    for name in prepare.PROGRAMS:
        file = machine.system.at(f"{prepare.DEFAULT_PROFILE}/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert to_do(machine)[0] == "path"
    prepare.apply(machine.system, None, lambda step: None)
    assert "apt-get" not in machine.ran
    assert machine.system.at("/usr/local/bin/nix-store").is_symlink()


def test_settings_of_the_owner_stay(machine: Machine) -> None:
    conf = machine.system.at(prepare.NIX_CONF)
    conf.parent.mkdir(parents=True)
    conf.write_text("build-users-group = builders")
    assert "settings" not in to_do(machine)
    conf.write_text("cores = 4")
    prepare.apply(machine.system, None, lambda step: None)
    assert conf.read_text() == "cores = 4\nbuild-users-group =\n"


def test_another_name_is_seen(machine: Machine) -> None:
    assert to_do(machine, "spark-7")[0] == "name"
    step = next(step for step in prepare.steps(machine.system, "spark-7") if not step.done)
    assert prepare.line(step) == "hostnamectl hostname spark-7"


def test_what_only_a_person_can_do_is_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "SPACE_GIB", 1 << 40)
    with pytest.raises(SparkserveError, match="mount a larger disk on /nix"):
        prepare.apply(machine.system, None, lambda step: None)
    assert to_do(machine) == ["space"]


def test_without_root_nothing_happens(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SparkserveError, match="to run as root"):
        prepare.apply(machine.system, None, lambda step: None)
    assert machine.ran == []
