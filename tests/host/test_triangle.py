"""The laptop fleet by its commands: from this checkout's files to one answer of three nodes, and away again.

Costs two starts of the group, 4 minutes once the closure is built. What can happen to its parts is in fleet/.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from endpoint import health

from sparkserve.local import triangle as laptop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine_copy import Copy

NODES = ["spark-0", "spark-1", "spark-2"]


@pytest.fixture(scope="module")
def triangle(triangle_copy: Copy) -> Iterator[Copy]:
    made = triangle_copy._replace(fleet="local-triangle")
    yield made
    made.run("down")


def on(copy: Copy, node: str, command: str) -> str:
    """The output of a shell command on a node, as an owner would run it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(copy.path))
        there = laptop.load("local-triangle")
    argv = ["ssh", "-F", str(there.ssh_config), node, command]
    done = subprocess.run(argv, env=there.environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_up_loses_a_worker_and_comes_back_as_a_group(triangle: Copy) -> None:
    first = triangle.json("up")
    assert (first["fleet"], first["already_running"]) == ("local-triangle", False)
    assert triangle.json("smoke")["answer"] == "The capital of France is Paris."
    namespaces = {on(triangle, node, "readlink /proc/$(pgrep -fo [s]glang)/ns/net") for node in NODES}
    assert len(namespaces) == 3
    code, out = triangle.run("status", "--json")
    assert (code, [(node["node"], node["state"]) for node in json.loads(out)["nodes"]]) == (
        0,
        [(node, "ready") for node in NODES],
    )
    assert triangle.json("up")["already_running"]

    begin = time.monotonic()
    on(triangle, "spark-2", "kill -9 $(pgrep -fo [s]glang::schedul)")
    while health(triangle.port) == 200:
        assert time.monotonic() - begin < 10
        time.sleep(0.1)
    code, out = triangle.run("status", "--json")
    assert code == 52
    assert any("spark-2" in str(node["reason"]) for node in json.loads(out)["nodes"])
    assert triangle.json("up")["fleet_id"] == first["fleet_id"]
    assert triangle.json("smoke")["answer"] == "The capital of France is Paris."

    assert triangle.run("down")[0] == 0
    assert triangle.run("status")[0] == 52
    mounts = subprocess.run(["findmnt", "--raw", "--noheadings"], capture_output=True, text=True, check=True)
    assert str(triangle.path) not in mounts.stdout
    loops = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True)
    assert str(triangle.path) not in loops.stdout
