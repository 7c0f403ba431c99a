"""Activation on a node in a folder: what it brings, keeps, refuses and restores."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from host_node import POLICY, RANK, UNITS, Node, closure

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.host import preview
from sparkserve.host.activate import activate, deactivate, dry_run
from sparkserve.host.effects import FRONT
from sparkserve.host.wanted import enabled

SYSCTL, GRUB = "/etc/sysctl.d/90-sparkserve.conf", "/etc/default/grub.d/90-sparkserve.cfg"
WANTS: dict[str, Any] = {
    "files": {
        SYSCTL: "vm.swappiness = 1\n",
        GRUB: 'GRUB_CMDLINE_LINUX="quiet"\n',
        "/etc/secret": ("s\n", "0600"),
        "/etc/tmpfiles.d/a.conf": "d /var/lib/a 0755 root root -\n",
    },
    "units": {
        "sparkserve-clocks.service": POLICY,
        RANK: "[Service]\nExecStart=@out@/bin/sparkserve\n[Install]\nWantedBy=multi-user.target\n",
    },
    "mask": ["cups.service"],
    "default_target": "multi-user.target",
    "sysctls": {"vm.swappiness": "1", "net.ipv4.tcp_rmem": "4096 65536 1"},
    "kernel_args": ["quiet"],
}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with files of its own at three of our paths, and with a printer's daemon that runs."""
    node = Node(tmp_path / "node")
    node.write("/proc/sys/vm/swappiness", "60\n")
    node.write("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
    node.write(SYSCTL, "vm.swappiness = 30\n").chmod(0o640)
    os.utime(node.system.at(SYSCTL), ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    node.system.at(f"{UNITS}/default.target").symlink_to("/lib/systemd/system/graphical.target")
    node.system.at("/etc/secret").symlink_to("./elsewhere")
    node.ran = {"cups.service"}
    return node


def test_all_of_a_closure_is_put_there_and_told(node: Node, tmp_path: Path) -> None:
    one = closure(tmp_path / "one", **WANTS)
    assert activate(node.system, one) is True
    at = node.system.at
    assert at(SYSCTL).read_text() == "vm.swappiness = 1\n"
    assert at(SYSCTL).stat().st_mode & 0o7777 == 0o644
    assert at("/etc/secret").stat(follow_symlinks=False).st_mode & 0o7777 == 0o600
    assert at(f"{UNITS}/{RANK}").readlink() == one / "units" / RANK
    assert at(f"{UNITS}/multi-user.target.wants/{RANK}").readlink() == Path("..") / RANK
    assert at(f"{UNITS}/cups.service").readlink() == Path("/dev/null")
    assert at(f"{UNITS}/default.target").readlink().name == "multi-user.target"
    assert at("/proc/sys/vm/swappiness").read_text() == "1\n"
    # The engine's group is started by `up` alone; GRUB and systemd hear of their files, netplan has none.
    assert node.calls == [
        "systemctl stop cups.service",
        "systemctl daemon-reload",
        "systemd-tmpfiles --create /etc/tmpfiles.d/a.conf",
        "update-grub",
        "systemctl restart sparkserve-clocks.service",
    ]
    node.calls.clear()
    assert activate(node.system, one) is False
    assert node.calls == []


def test_a_front_that_runs_gets_what_has_changed(node: Node, tmp_path: Path) -> None:
    """Else the one of the closure before would go on, at its port, until the next boot."""
    text = "[Service]\nExecStart=@out@/bin/sparkserve\n[Install]\nWantedBy=multi-user.target\n"
    wants: dict[str, Any] = {"units": {FRONT: text, RANK: text}}
    one, two = closure(tmp_path / "one", **wants), closure(tmp_path / "two", **wants)
    assert dry_run(node.system, one)["restart"] == []
    activate(node.system, one)
    # A group that was never started is not started.
    assert node.calls == ["systemctl daemon-reload"]
    node.calls.clear()
    node.ran |= {FRONT, RANK}
    assert dry_run(node.system, two)["restart"] == [FRONT]
    activate(node.system, two)
    assert node.calls == ["systemctl daemon-reload", f"systemctl restart {FRONT}"]
    node.calls.clear()
    activate(node.system, two)
    assert node.calls == []


def test_deactivation_restores_every_byte(node: Node, tmp_path: Path) -> None:
    before = node.tree()
    for number in range(3):
        activate(node.system, closure(tmp_path / f"{number}", **WANTS))
    node.calls.clear()
    assert deactivate(node.system) is True
    assert node.tree() == before
    assert list(node.system.state().parent.iterdir()) == []
    assert f"systemctl stop {RANK}" not in node.calls  # it did not run
    assert "systemctl start cups.service" in node.calls
    assert deactivate(node.system) is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_of_a_file_comes_back(node: Node, tmp_path: Path) -> None:
    os.chown(node.system.at(SYSCTL), 1234, 4321)
    before = node.tree()
    activate(node.system, closure(tmp_path / "one", **WANTS))
    assert node.system.at(SYSCTL).stat().st_uid == 0
    deactivate(node.system)
    assert node.tree() == before
    assert node.system.at(SYSCTL).stat().st_gid == 4321


def test_what_the_next_closure_does_not_want_goes_back(node: Node, tmp_path: Path) -> None:
    activate(node.system, closure(tmp_path / "one", **WANTS))
    rest = {
        **WANTS,
        "files": {GRUB: "other\n"},
        "units": {RANK: WANTS["units"][RANK]},
        "sysctls": {},
        "mask": [],
    }
    node.ran.add("sparkserve-clocks.service")
    node.calls.clear()
    activate(node.system, closure(tmp_path / "two", **rest))
    assert node.system.at(SYSCTL).read_text() == "vm.swappiness = 30\n"
    assert node.system.at(SYSCTL).stat().st_mode & 0o7777 == 0o640
    assert node.system.at("/proc/sys/vm/swappiness").read_text() == "60\n"
    assert node.system.at(GRUB).read_text() == "other\n"
    links = [path.name for path in node.system.at(UNITS).rglob("*") if path.is_symlink()]
    assert sorted(links) == ["default.target", RANK, RANK]
    assert node.calls[0] == "systemctl stop sparkserve-clocks.service"
    assert node.calls[-1] == "systemctl start cups.service"


def test_refuses_while_an_engine_runs_unless_nothing_changes(node: Node, tmp_path: Path) -> None:
    one, two = closure(tmp_path / "one", **WANTS), closure(tmp_path / "two", **WANTS)
    activate(node.system, one)
    before = node.tree()
    run_files.note_engine(node.system.runs, 1, procfs.find(os.getpid()))
    for wanted in (two, None):
        with pytest.raises(SparkserveError, match=f"found process {os.getpid()} runs") as caught:
            activate(node.system, wanted) if wanted else deactivate(node.system)
        assert caught.value.id == "NODE.ACTIVATE"
    assert node.tree() == before
    assert activate(node.system, one) is False
    run_files.note_engine(node.system.runs, 1, None)
    assert activate(node.system, two) is True


def test_a_file_edited_by_hand_is_named_and_never_lost(node: Node, tmp_path: Path) -> None:
    one, two = closure(tmp_path / "one", **WANTS), closure(tmp_path / "two", **WANTS)
    original = node.tree()
    activate(node.system, one)
    node.write(SYSCTL, "mine\n")
    edited = node.tree()
    for each in (one, two):
        with pytest.raises(SparkserveError, match=f"edited by hand: {SYSCTL};") as caught:
            activate(node.system, each)
        assert caught.value.exit_code == 77
    assert node.tree() == edited
    activate(node.system, two, replace=True)
    assert node.system.at(SYSCTL).read_text() == "vm.swappiness = 1\n"
    kept = node.system.state() / "kept/etc/sysctl.d"
    assert [file.read_text() for file in kept.iterdir()] == ["mine\n"]
    node.system.at("/etc/secret").chmod(0o644)
    deactivate(node.system)
    assert node.tree() == original
    assert [file.read_text() for file in (kept / "..").resolve().glob("secret.*")] == ["s\n"]


def test_a_closure_of_another_host_is_refused(node: Node, tmp_path: Path) -> None:
    before = node.tree()
    other = closure(tmp_path / "other", node="spark-1", **WANTS)
    with pytest.raises(
        SparkserveError, match="expected the node spark-1; found the host name spark-0"
    ) as caught:
        activate(node.system, other)
    assert caught.value.exit_code == 76
    assert node.tree() == before
    activate(node.system, closure(tmp_path / "one", **WANTS))
    # Renamed since: what it took before still says who it is.
    moved = dataclasses.replace(node.system, name="spark-1.lan")
    node.wire("spark-1")
    with pytest.raises(SparkserveError, match="found spark-0, whose closure is in effect"):
        activate(moved, other)
    deactivate(moved)
    assert activate(moved, other) is True


def test_files_that_their_reader_refuses_are_taken_back(node: Node, tmp_path: Path) -> None:
    node.write("/etc/ssh/sshd_config.d/95.conf", "MaxStartups 10\n")
    files = {"/etc/ssh/sshd_config.d/95.conf": "MaxStartups many\n", SYSCTL: "new\n"}
    node.breaks = {"sshd -t": "line 1: Invalid MaxStartups"}
    one = closure(tmp_path / "one", files=files)
    with pytest.raises(SparkserveError, match="files that sshd takes; found line 1: Invalid MaxStartups"):
        activate(node.system, one)
    assert node.system.at("/etc/ssh/sshd_config.d/95.conf").read_text() == "MaxStartups 10\n"
    assert not any("ssh.service" in call for call in node.calls)
    node.breaks.clear()
    assert activate(node.system, one) is True
    assert node.calls[-1] == "systemctl try-restart ssh.service"


def test_a_program_that_fails_is_run_again(node: Node, tmp_path: Path) -> None:
    one = closure(tmp_path / "one", **WANTS)
    node.breaks = {"update-grub": "no space"}
    with pytest.raises(SparkserveError, match="success of: update-grub; found no space"):
        activate(node.system, one)
    node.breaks.clear()
    node.calls.clear()
    assert activate(node.system, one) is True
    assert "update-grub" in node.calls


def test_a_dry_run_says_all_and_changes_nothing(node: Node, tmp_path: Path) -> None:
    one = closure(tmp_path / "one", **{**WANTS, "kernel_args": ["kho=off"]})
    before = node.tree()
    found = dry_run(node.system, one)
    assert node.tree() == before
    assert node.calls == []
    assert not node.system.at("/var").exists()
    json.dumps(found)
    said = preview.lines(found)
    with pytest.raises(SparkserveError, match="kho=off"):
        activate(node.system, one)
    # Exactly what the activation then does.
    changed = {f"/{path}" for path, what in node.tree().items() if before.get(path) != what}
    files = {file["path"] for file in found["files"]}
    values = {f"/proc/sys/{name.replace('.', '/')}" for name in found["sysctls"]}
    folders = {f"{UNITS}/multi-user.target.wants", "/etc/default", "/etc/default/grub.d", "/etc/tmpfiles.d"}
    assert changed == files | values | folders
    assert [f"systemctl stop {name}" for name in found["stop"]] + found["reload"] == node.calls[:-1]
    assert [f"systemctl restart {name}" for name in found["restart"]] == node.calls[-1:]
    assert said[0] == "stop cups.service"
    assert any(line.startswith(f"{SYSCTL}: file ") and line.endswith(" 0644") for line in said)
    assert "vm.swappiness: 60 -> 1" in said
    assert said[-1] == "after a reboot: kho=off on the kernel's command line"
    assert preview.lines(dry_run(node.system, one)) == said[-1:]


def test_links_of_an_activation_without_a_record_are_ours(node: Node, tmp_path: Path) -> None:
    node.system.at(f"{UNITS}/{RANK}").symlink_to(f"/nix/store/x-host/units/{RANK}")
    activate(node.system, closure(tmp_path / "one", **WANTS))
    deactivate(node.system)
    assert not node.system.at(f"{UNITS}/{RANK}").is_symlink()


def test_where_a_unit_wants_to_be_started() -> None:
    unit = "[Unit]\nWantedBy=no.target\n[Install]\nWantedBy=a.target b.target\nRequiredBy = c.target\n"
    assert list(enabled(unit)) == ["a.target.wants", "b.target.wants", "c.target.requires"]


def test_a_dead_engine_is_no_engine(tmp_path: Path) -> None:
    file = tmp_path / "rank.json"
    assert run_files.engine(file) is None
    for text in ("{", "[]", '{"engine": {"pid": 1}}', '{"boot": 1, "engine": {"pid": 1, "start": 7}}'):
        file.write_text(text)
        assert run_files.engine(file) is None
