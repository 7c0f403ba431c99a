"""Activation on a head whose endpoint asks for keys: no closure comes into effect that could not serve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import key_values
import pytest
from host_node import Node, closure

from sparkserve.errors import SparkserveError
from sparkserve.host.activate import activate, dry_run

if TYPE_CHECKING:
    from pathlib import Path

dumpable = key_values.dumpable
FILE = "/etc/sparkserve/api-key"


def keyed(folder: Path, path: str, node: str = "spark-0") -> Path:
    made = closure(folder, node=node, files={"/etc/a": "b\n"})
    plan = json.loads((made / "plan.json").read_text())
    plan["serving"]["api_key_file"] = path
    (made / "plan.json").write_text(json.dumps(plan))
    return made


def test_a_head_without_the_file_is_left_as_it_is(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    one = keyed(tmp_path / "one", FILE)
    before = node.tree()
    for what in (lambda: dry_run(node.system, one), lambda: activate(node.system, one)):
        with pytest.raises(SparkserveError, match=r"KEY\.FILE.*No such file"):
            what()
    assert (node.tree(), node.calls) == (before, [])
    node.write(FILE, f"{key_values.new()}\n").chmod(0o644)
    with pytest.raises(SparkserveError, match=r"KEY\.FILE.*mode 0644"):
        activate(node.system, one)
    node.system.at(FILE).chmod(0o600)
    assert activate(node.system, one) is True


def test_workers_and_what_systemd_decrypts_have_no_such_file(tmp_path: Path) -> None:
    worker = Node(tmp_path / "worker", name="spark-1")
    assert activate(worker.system, keyed(tmp_path / "one", FILE, "spark-1")) is True
    head = Node(tmp_path / "head")
    path = "/run/credentials/sparkserve-front.service/api-key"
    assert activate(head.system, keyed(tmp_path / "two", path)) is True
