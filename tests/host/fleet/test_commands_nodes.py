"""`status`, `logs` and `smoke` on a real group: what is lost has a name, and nothing stays behind on a node.

3 min on two cores.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from group_fleet import HEAD, NODES, Real
from nodes import until

from sparkserve.local import faults, power

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FLEET = ("--fleet", "local-triangle")
ENDS_S = 60.0  # a command that hangs, not one that is slow


pytestmark = pytest.mark.usefixtures("serving")


def start(*arguments: str) -> subprocess.Popen[str]:
    """A command in the checkout of the group, which is in the environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "sparkserve.cli.main", *arguments, *FLEET],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def run(*arguments: str) -> tuple[int, str, str]:
    with start(*arguments) as child:
        out, err = child.communicate(timeout=ENDS_S)
    return child.returncode, out, err


def nodes() -> dict[str, dict[str, Any]]:
    """What `status` says of each node."""
    begin = time.monotonic()
    code, out, _ = run("status", "--json")
    rows = {row["node"]: row for row in json.loads(out)["nodes"]}
    sys.stderr.write(f"status took {time.monotonic() - begin:.1f} s\n")
    assert code == (0 if all(row["state"] == "ready" for row in rows.values()) else 52)
    return rows


def inside(group: Real, node: str, command: str) -> None:
    """Run a shell command in a node without ssh."""
    init = power.init(group.fleet, node)
    assert init is not None
    subprocess.run(["nsenter", "-t", str(init.pid), "-a", "/bin/sh", "-c", command], check=True)


class Reader:
    """The lines of a command that goes on."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self._lines.put(line.rstrip("\n"))

    def until(self, what: Callable[[str], bool], seconds: float) -> list[str]:
        """Lines up to the first that `what` is true of."""
        found: list[str] = []
        deadline = time.monotonic() + seconds
        while not found or not what(found[-1]):
            try:
                found.append(self._lines.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no such line; the last of {len(found)}: {found[-3:]}") from None
        return found


def from_all(what: Callable[[str], bool]) -> Callable[[str], bool]:
    """True as soon as every node had a line that `what` is true of."""
    seen = set()

    def each(line: str) -> bool:
        if what(line):
            seen.add(line.partition(" | ")[0])
        return seen >= set(NODES)

    return each


@contextmanager
def followed(*arguments: str) -> Iterator[Reader]:
    with start("logs", "--follow", *arguments) as child:
        try:
            yield Reader(child)
        finally:
            child.kill()


def test_status_of_a_group_that_serves(group: Real) -> None:
    rows = nodes()
    assert [rows[node]["state"] for node in NODES] == ["ready"] * 3
    status = group.status()
    for node in NODES:
        assert rows[node]["boot"] == status.number
        assert rows[node]["fleet_id"] == status.fleet_id
        assert rows[node]["pss_bytes"] > 300_000_000
        assert "sparkserve_launch" in group.sh(node, f"tr '\\0' ' ' </proc/{rows[node]['pid']}/cmdline")
        assert rows[node]["uptime_s"] > 0
    code, _, err = run("smoke")
    assert code == 0 and "The capital of France is Paris." in err.splitlines(), err


def test_an_sshd_that_is_stopped(group: Real) -> None:
    inside(group, "spark-1", "systemctl stop sparkserve-reach.timer")  # it would start another one
    inside(group, "spark-1", "systemctl kill --signal=STOP ssh.service")
    try:
        rows = nodes()
        assert [rows[node]["state"] for node in NODES] == ["ready", "unreachable", "ready"]
        assert rows["spark-1"]["reason"].endswith("the controller says of its rank: ready")
        code, _, err = run("smoke")
        assert code == 0, err  # its rank serves on
        code, out, err = run("logs", "-n", "2")
        assert (code, len(out.splitlines())) == (71, 4)
        assert "spark-1" in err
    finally:
        inside(group, "spark-1", "systemctl kill --signal=CONT ssh.service")
        inside(group, "spark-1", "systemctl start sparkserve-reach.timer")


def test_a_node_that_is_off_or_frozen(group: Real) -> None:
    number = group.status().number
    faults.freeze(group.fleet, "spark-2")
    faults.power_cut(group.fleet, "spark-1")
    try:
        group.end_of(number)
        rows = nodes()
        assert [rows[node]["state"] for node in NODES[1:]] == ["off", "unreachable"]
        assert rows[HEAD]["state"] in ("down", "starting")
        assert "(spark-1)" in rows[HEAD]["reason"]
    finally:
        faults.thaw(group.fleet, "spark-2")
        faults.power_on(group.fleet, "spark-1")


def test_a_head_that_is_frozen(group: Real) -> None:
    faults.freeze(group.fleet, HEAD)
    try:
        rows = nodes()
        assert [rows[node]["state"] for node in NODES] == ["unreachable", "lost", "lost"]
    finally:
        faults.thaw(group.fleet, HEAD)


def test_a_supervisor_that_died_has_last_words(group: Real) -> None:
    group.sh("spark-1", "systemctl kill --signal=KILL sparkserve-rank")
    until(
        "the unit to fail",
        lambda: "failed" in group.attempt("spark-1", "systemctl is-failed sparkserve-rank").stdout,
    )
    row = nodes()["spark-1"]
    assert row["state"] == "lost"
    assert "its supervisor is failed" in row["reason"]


def test_logs_followed_over_a_new_boot_and_a_node_s_power_cycle(group: Real) -> None:
    with followed("-n", "1") as reader:
        reader.until(from_all(lambda line: True), 20)
        group.ask("Say hello.")
        reader.until(lambda line: line.startswith("spark-0 | ") and "POST /v1/chat" in line, 20)
        number = group.status().number
        group.sh("spark-1", "kill -9 $(pgrep -f '[s]glang::schedul' | head -1)")
        reader.until(from_all(lambda line: line.endswith(f" | == boot {number + 1} ==")), 120)
        until("up by itself", lambda: group.status().state == "up", 300)
        faults.power_cycle(group.fleet, "spark-2")
        reader.until(lambda line: line.startswith("spark-2 | == boot "), 180)
        until("up by itself", lambda: group.status().state == "up", 300)
        begin = time.monotonic()
        reader.child.send_signal(signal.SIGINT)
        assert reader.child.wait(ENDS_S) == 130
        sys.stderr.write(f"ended {time.monotonic() - begin:.1f} s after Ctrl-C\n")
    for node in NODES:
        until("no follower", lambda: group.attempt(node, "pgrep -f '[r]ank log'").stdout == "", 5)  # noqa: B023


def test_the_supervisor_s_journal_followed(group: Real) -> None:
    with followed("--part", "supervisor", "--node", "spark-2", "-n", "1") as reader:
        reader.until(lambda line: True, 20)
        group.sh("spark-2", "systemctl kill --signal=KILL sparkserve-rank")
        reader.until(lambda line: "status=9/KILL" in line, 20)
        reader.child.send_signal(signal.SIGINT)
        assert reader.child.wait(ENDS_S) == 130
    until("no follower", lambda: group.attempt("spark-2", "pgrep -f '[j]ournalctl'").stdout == "", 5)


@pytest.mark.parametrize("part", ["engine", "supervisor"])
def test_a_command_that_is_killed_leaves_no_follower(group: Real, part: str) -> None:
    name = {"engine": "[r]ank log", "supervisor": "[j]ournalctl"}[part]
    with followed("-n", "1", "--part", part) as reader:
        reader.until(from_all(lambda line: True), 20)
        for node in NODES:
            assert group.sh(node, f"pgrep -f '{name}'")
        reader.child.send_signal(signal.SIGKILL)  # no time to clean up
    for node in NODES:
        until("no follower", lambda: group.attempt(node, f"pgrep -f '{name}'").stdout == "", 10)  # noqa: B023
