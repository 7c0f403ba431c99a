"""`host status`: what a node says of itself beside its plan."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from host_node import Node, closure
from test_activate import SYSCTL, WANTS

from sparkserve.errors import SparkserveError
from sparkserve.host.activate import activate
from sparkserve.host.status import status

if TYPE_CHECKING:
    from pathlib import Path

CALM = {"edited": [], "differences": [], "reboot": [], "interrupted": False}


def test_a_node_as_planned_and_then_spoiled(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    node.write("/proc/sys/vm/swappiness", "60\n")
    node.write("/proc/sys/net/ipv4/tcp_rmem", "1 2 3\n")
    assert status(node.system) == {**CALM, "node": None, "closure": None, "generation": None}
    one = closure(tmp_path / "one", **WANTS)
    activate(node.system, one)
    profile = node.system.at("/nix/var/nix/profiles/sparkserve")
    profile.parent.mkdir(parents=True)
    profile.symlink_to("sparkserve-12-link")
    assert status(node.system) == {**CALM, "node": "spark-0", "closure": str(one), "generation": 12}
    before = node.tree()
    node.write(SYSCTL, "mine\n")
    node.write("/proc/sys/vm/swappiness", "9\n")
    node.write("/proc/cmdline", "\n")
    found = status(node.system)
    assert found["edited"] == [SYSCTL]
    assert found["differences"] == ["vm.swappiness is 9, not 1"]
    assert found["reboot"] == ["the kernel's command line is without it, not with quiet"]
    assert node.system.at(SYSCTL).read_text() == "mine\n"
    assert before.keys() == node.tree().keys()


def test_a_closure_that_is_gone_is_said(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    one = closure(tmp_path / "one", files={"/etc/a": "a\n"})
    activate(node.system, one)
    shutil.rmtree(one)
    with pytest.raises(SparkserveError, match="deleted from the store"):
        status(node.system)


def test_a_record_that_was_edited_is_said(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    node.write("/var/lib/sparkserve/activation/record.json", '{"entries": 7}')
    with pytest.raises(SparkserveError, match="the record of what activation changed"):
        status(node.system)
