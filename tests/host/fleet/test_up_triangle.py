"""`up` and `down` of three nodes as commands that meet each other, Ctrl-C and kill -9: all of it or nothing.

8 min on two cores: most rounds power three nodes on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest
from endpoint import ask, health
from group_fleet import FLEET, NODES, inside
from nodes import RANK, processes, until
from running import SERVED_S, Running

from sparkserve.engine import procfs
from sparkserve.local import keeper, leftovers, triangle, wiring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine_copy import Copy

    from sparkserve.local.names import Names


@pytest.fixture(scope="module")
def copy(triangle_copy: Copy) -> Iterator[Copy]:
    with inside(triangle_copy):
        yield triangle_copy


@pytest.fixture
def mine(copy: Copy) -> Iterator[Names]:
    """The names of the fleet, which is down before and after every test."""
    names = triangle.names(FLEET)
    assert leftovers.find(names) == []
    yield names
    triangle.down(FLEET)


def is_gone(copy: Copy, mine: Names) -> None:
    """Nothing of the fleet is on the machine, and its port is free."""
    assert leftovers.find(mine) == []
    assert not any(str(mine.folder) in procfs.command_line(pid) for pid in procfs.pids())
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", copy.port))


def engine_runs() -> bool:
    """Whether an engine's process runs on one of the nodes."""
    ranks = [processes(triangle.names(FLEET), node, RANK) for node in NODES]
    stats = [procfs.look(process.pid) for rank in ranks for process in rank]
    return any(stat is not None and stat.name.startswith("sglang") for stat in stats)


def come_to(phase: str, up: Running, mine: Names) -> None:
    """Wait until `up` is in the middle of a phase."""

    def there() -> bool:
        assert up.child.poll() is None, up.lines
        match phase:
            case "pins":
                return up.said("Evaluate the plan")
            case "build":
                return up.runs("nix build")
            case "content address":
                return up.said("Build the closures")
            case "power on":
                return bool(wiring.namespaces(mine))
            case "boot":
                return mine.record.exists()
            case "copy":
                return up.runs("nix copy --to ssh://")
            case "activate":
                return up.said("Copy the closure")
            case "start":
                return engine_runs()
        return up.said("Start the group")

    if phase == "wait":  # for ever, as nobody passes bytes on to the head
        until("a keeper", lambda: keeper.find(mine) is not None, 120)
        guard = keeper.find(mine)
        assert guard is not None
        until("it to listen", lambda: up.said("Power the nodes on"), 60)
        guard.send(signal.SIGSTOP)
    begin = time.monotonic()
    while not there():
        assert time.monotonic() - begin < SERVED_S, up.lines
        time.sleep(0.01)


PHASES = ("pins", "build", "content address", "power on", "boot", "copy", "activate", "start", "wait")


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_leaves_nothing(copy: Copy, mine: Names, phase: str) -> None:
    if phase == "content address":
        (copy.path / ".sparkserve/addressed.json").unlink(missing_ok=True)
    up = Running(copy, "up")
    come_to(phase, up, mine)
    os.killpg(up.child.pid, signal.SIGINT)
    assert up.end(60)[0] == 130
    assert up.said("Interrupted.") and not up.said("Traceback")
    is_gone(copy, mine)


def test_ctrl_c_again_and_again_leaves_nothing(copy: Copy, mine: Names) -> None:
    up = Running(copy, "up")
    come_to("start", up, mine)
    begin = time.monotonic()
    while up.child.poll() is None:
        assert time.monotonic() - begin < 60
        os.killpg(up.child.pid, signal.SIGINT)
        time.sleep(0.2)
    assert up.end()[0] == 130, up.lines
    assert not up.said("Traceback")
    is_gone(copy, mine)


@pytest.mark.parametrize("phase", ["power on", "boot", "copy", "start"])
def test_down_after_a_killed_up_leaves_nothing(copy: Copy, mine: Names, phase: str) -> None:
    if phase == "copy":  # of 2 GB, which goes on without `up`
        triangle.down(FLEET, disks=True)
    up = Running(copy, "up")
    come_to(phase, up, mine)
    up.child.kill()
    assert up.end()[0] == -signal.SIGKILL
    assert Running(copy, "down").end(60)[0] == 0
    is_gone(copy, mine)


@pytest.mark.parametrize("phase", ["power on", "copy", "start"])
def test_up_after_a_killed_up_serves(copy: Copy, mine: Names, phase: str) -> None:
    up = Running(copy, "up")
    come_to(phase, up, mine)
    up.child.kill()
    assert up.end()[0] == -signal.SIGKILL
    assert Running(copy, "up").end()[0] == 0
    assert "Paris" in ask(copy.port, "What is the capital of France?")
    assert Running(copy, "down").end(120)[0] == 0
    is_gone(copy, mine)


def test_a_second_up_and_a_down_wait_for_the_first_up(copy: Copy, mine: Names) -> None:
    first = Running(copy, "up", "--json")
    come_to("pins", first, mine)  # nothing of the fleet is there yet
    waits = f"Another sparkserve (pid {first.child.pid}) is changing {FLEET}; waiting until it is done."
    second = Running(copy, "up", "--json")
    until("the second to wait", lambda: second.said(waits), 60)
    code, out = first.end()
    assert (code, json.loads(out)["already_running"]) == (0, False)
    code, out = second.end()
    assert (code, json.loads(out)["already_running"]) == (0, True)
    assert health(copy.port) == 200
    assert Running(copy, "down").end(120)[0] == 0
    is_gone(copy, mine)

    third = Running(copy, "up")
    come_to("build", third, mine)
    down = Running(copy, "down")
    waits = waits.replace(str(first.child.pid), str(third.child.pid))
    until("down to wait", lambda: down.said(waits), 60)
    assert third.end()[0] == 0
    assert down.end(120)[0] == 0
    assert not down.said("does not run")
    is_gone(copy, mine)
