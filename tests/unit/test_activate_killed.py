"""Activations that a real SIGKILL ends before each of their steps are finished or undone by the next one."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest
from host_node import UNITS, Node, closure
from test_activate import SYSCTL, WANTS

from sparkserve.host.activate import activate, deactivate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.host.system import System

NEXT = {
    **WANTS,
    "files": {SYSCTL: "vm.swappiness = 2\n", "/etc/netplan/60.yaml": "network: {}\n"},
    "sysctls": {"vm.swappiness": "2"},
}


def killed_before(node: Node, where: int | str, change: Callable[[System], object]) -> str | None:
    """Do `change` in a process that is killed before a step, by number or name; its name, or None without."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        passed = 0

        def step(name: str) -> None:
            nonlocal passed
            if where in (passed, name):
                os.write(writer, name.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            passed += 1

        try:
            change(dataclasses.replace(node.system, step=step))
        finally:
            os._exit(0)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader) as said:
        name = said.read()
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if name else 0)
    return name or None


def world(folder: Path) -> tuple[Node, Path, Path]:
    """A node with a few files of its own, and two closures for it."""
    node = Node(folder / "node")
    node.write("/proc/sys/vm/swappiness", "60\n")
    node.write("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456\n")
    node.write(SYSCTL, "vm.swappiness = 30\n").chmod(0o640)
    os.utime(node.system.at(SYSCTL), ns=(1_600_000_000_000_000_001, 1_600_000_000_000_000_001))
    node.system.at(f"{UNITS}/default.target").symlink_to("/lib/systemd/system/graphical.target")
    return node, closure(folder / "one", **WANTS), closure(folder / "two", **NEXT)


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing of what it wrote; waiting for the disk would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.mark.parametrize("what", ["activate", "next", "deactivate", "hand"])
def test_killed_at_every_step(tmp_path: Path, what: str) -> None:
    number, steps = 0, []
    while True:
        folder = tmp_path / f"{number}"
        folder.mkdir()
        node, one, two = world(folder)
        original = node.tree()
        if what != "activate":
            activate(node.system, one)
        if what == "hand":
            node.write(SYSCTL, "mine\n")
        changes: dict[str, Callable[[System], object]] = {
            "activate": partial(activate, closure=one),
            "next": partial(activate, closure=two),
            "deactivate": deactivate,
            "hand": partial(activate, closure=two, replace=True),
        }
        change = changes[what]
        step = killed_before(node, number, change)
        _whole(node)
        if what == "hand":
            _mine_is_somewhere(node)
        if step is None:
            break
        steps.append(step)
        if number % 2:
            # Undone.
            deactivate(node.system)
            assert node.tree() == original, step
        else:
            # Finished: as if nothing had happened.
            change(node.system)
            _same_as_without(folder, node, what)
            deactivate(node.system)
            assert node.tree() == original, step
        shutil.rmtree(folder)
        number += 1
    assert len(steps) > 10
    assert "write down what is to be done" in steps[:5]
    assert steps[-1] == "write down what is done"


def _whole(node: Node) -> None:
    """Every file of ours is the old one or the new one, never a part."""
    if node.system.at(SYSCTL).exists():
        assert node.system.at(SYSCTL).read_text() in {
            "mine\n",
            *(f"vm.swappiness = {n}\n" for n in (30, 1, 2)),
        }


def _mine_is_somewhere(node: Node) -> None:
    texts = [path.read_text() for path in (node.system.state() / "kept").rglob("*") if path.is_file()]
    assert "mine\n" in [node.system.at(SYSCTL).read_text(), *texts]


def _same_as_without(folder: Path, node: Node, what: str) -> None:
    """Compare with a node on which the same closure came without an accident."""
    (folder / "calm").mkdir()
    calm, *_ = world(folder / "calm")
    if what != "deactivate":
        activate(calm.system, folder / ("one" if what == "activate" else "two"))
    assert _without_times(node) == _without_times(calm)


def _without_times(node: Node) -> dict[str, object]:
    return {path: what[0][0] if isinstance(what, tuple) else what for path, what in node.tree().items()}


def test_what_was_interrupted_is_told_to_its_readers(tmp_path: Path) -> None:
    node, one, _ = world(tmp_path)
    assert killed_before(node, "update-grub", lambda system: activate(system, one)) == "update-grub"
    node.calls.clear()
    assert activate(node.system, one) is True
    # All files were there already; that GRUB does not know them yet would show at the next boot.
    assert node.calls == [
        "systemctl daemon-reload",
        "systemd-tmpfiles --create /etc/tmpfiles.d/a.conf",
        "update-grub",
        "systemctl restart sparkserve-clocks.service",
    ]
    assert activate(node.system, one) is False
