"""TP=3 with real SGLang over three nodes, and what can happen to it: all or nothing, and always by name.

15 min on two cores: every fault costs a new start. `-k` picks some.
"""

from __future__ import annotations

import json
import signal as signals
import time
from typing import TYPE_CHECKING

import pytest
from group_fleet import FLEET, HEAD, NODES, UP_S, Real
from nodes import SSHD, processes, until

from sparkserve.local import faults
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from engine_copy import Copy

SCHEDULER = "pgrep -f [s]glang::schedul | head -1"
SUPERVISOR = "systemctl show -p MainPID --value sparkserve-rank"


pytestmark = pytest.mark.usefixtures("serving")


def lost(group: Real, number: int, begin: float) -> str:
    """The group of boot `number` has ended everywhere, and clients are told, in time; why."""
    until("health to turn", lambda: group.health() != 200, 10)
    assert time.monotonic() - begin < 10
    return group.end_of(number).reason


def test_three_ranks_on_three_nodes_say_paris(group: Real) -> None:
    assert "Paris" in group.ask("What is the capital of France?")
    status = group.status()
    assert [(rank.node, rank.phase, rank.adapters) for rank in status.ranks] == [
        (node, "ready", ("oneshot-collectives",)) for node in NODES
    ]
    assert {rank.fleet_id for rank in status.ranks} == {status.fleet_id}
    for node in NODES:
        assert len(group.sh(node, "pgrep -f [s]glang::schedul").split()) == 1
        assert group.sh(node, "systemctl is-system-running") == "running"
        assert int(group.sh(node, f"cat /proc/$({SCHEDULER})/oom_score_adj")) == 500


def test_tensors_take_the_cables_and_control_the_management_link(group: Real) -> None:
    before = {node: faults.counters(group.fleet, node) for node in NODES}
    group.ask("Count to ten.")
    for node in NODES:
        after = faults.counters(group.fleet, node)
        sent = {name: after[name].sent - before[node][name].sent for name in after}
        management = sent.pop("enP7s7")
        del sent["lo"]
        assert management < 0.1 * (management + sum(sent.values())), (node, management, sent)
        assert all(value > 10_000 for value in sent.values()), (node, sent)


def test_up_again_does_nothing(group: Real) -> None:
    number = group.status().number
    assert rollout.put_into_effect(group.runner, group.closures) is False
    assert rollout.start_group(group.runner, HEAD).number == number


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_a_rank_that_is_killed_or_stopped(group: Real, node: str, signal: str) -> None:
    number, begin = group.status().number, time.monotonic()
    group.sh(node, f"kill -{signal} $({SCHEDULER})")
    assert f"({node})" in lost(group, number, begin)


@pytest.mark.parametrize("node", NODES)
def test_a_supervisor_that_is_killed_takes_its_engine_along(group: Real, node: str) -> None:
    begin = time.monotonic()
    group.sh(node, f"kill -9 $({SUPERVISOR})")
    until("health to turn", lambda: group.health() != 200, 10)
    assert time.monotonic() - begin < 10
    for each in NODES:
        until("no engine", lambda: group.attempt(each, SCHEDULER).stdout == "", 15)  # noqa: B023
    if node != HEAD:
        assert f"({node}) not connected" in group.status().reason
    assert rollout.put_into_effect(group.runner, group.closures) is True


def test_a_supervisor_that_is_stopped(group: Real) -> None:
    number, begin = group.status().number, time.monotonic()
    group.sh("spark-2", f"kill -STOP $({SUPERVISOR})")
    assert lost(group, number, begin) == "rank 2 (spark-2): silent for 5 s (frozen, or off the network)"
    # systemd puts another in its place, which connects; nobody need send SIGCONT.
    until("its engine to be gone", lambda: group.attempt("spark-2", SCHEDULER).stdout == "", 25)
    until("up by itself", lambda: group.status().state == "up", UP_S)


def test_a_stopped_supervisor_of_the_head_is_replaced(group: Real) -> None:
    number = group.status().number
    group.sh(HEAD, f"kill -STOP $({SUPERVISOR})")
    until("a new boot to be up", lambda: up_after(group, number), UP_S)


def up_after(group: Real, number: int) -> bool:
    """Whether a boot after `number` is up; without a controller nobody knows."""
    status = rollout.status(group.runner, HEAD)
    return status is not None and status.number > number and status.state == "up"


def test_the_front_comes_back_and_the_group_never_went(group: Real) -> None:
    number = group.status().number
    group.sh(HEAD, "kill -9 $(systemctl show -p MainPID --value sparkserve-front)")
    until("health to come back", lambda: group.health() == 200, 15)
    assert group.status().number == number


def test_a_stopped_front_is_replaced_and_the_group_never_went(group: Real) -> None:
    number, front = group.status().number, "systemctl show -p MainPID --value sparkserve-front"
    old = group.sh(HEAD, front)
    group.sh(HEAD, f"kill -STOP {old}")
    assert group.health() == 0  # no answer at all: nothing wrong is said
    took = until("health to come back", lambda: group.health() == 200, 30)
    assert group.sh(HEAD, front) != old, took
    assert group.status().number == number


def test_sshd_is_not_needed_to_serve(group: Real) -> None:
    group.sh(
        "spark-1", "nohup sh -c 'systemctl kill -s KILL ssh.service; sleep 1; systemctl start ssh' >&- 2>&- &"
    )
    time.sleep(3)
    assert group.health() == 200
    until("sshd to answer", lambda: group.attempt("spark-1", "true").returncode == 0)


@pytest.mark.parametrize("node", [HEAD, "spark-1"])
def test_a_stopped_sshd_is_named_and_serving_goes_on(group: Real, triangle_copy: Copy, node: str) -> None:
    number = group.status().number
    group.sh(node, "systemctl stop sparkserve-reach.timer")  # it would start another one
    sshd = processes(group.fleet.names, node, SSHD)
    for process in sshd:
        process.send(signals.SIGSTOP)
    try:
        begin = time.monotonic()
        code, out = triangle_copy.run("status", "--fleet", FLEET, "--json")
        assert time.monotonic() - begin < 20
        states = {row["node"]: row["state"] for row in json.loads(out)["nodes"]}
        assert (code, states[node]) == (52, "unreachable")
        begin = time.monotonic()
        with triangle_copy.start("up", "--fleet", FLEET) as up:
            told = up.communicate(timeout=120)[1]
        assert up.returncode == 15 and f"expected {node} to start and answer on its ssh port" in told, told
        assert time.monotonic() - begin < 60
        assert "Paris" in group.ask("What is the capital of France?")
    finally:
        for process in sshd:
            process.send(signals.SIGCONT)
    until("sshd to answer", lambda: group.attempt(node, "true").returncode == 0)
    group.sh(node, "systemctl start sparkserve-reach.timer")
    assert (group.health(), group.status().number) == (200, number)


def test_a_cut_cable_is_named(group: Real) -> None:
    number, begin = group.status().number, time.monotonic()
    faults.cut_link(group.fleet, "spark-1", "spark-2")
    try:
        assert "no carrier on" in lost(group, number, begin)
        until("preflight to refuse", lambda: "no echo from rank" in group.status().reason, 30)
        assert group.status().starts[-1].number == number  # a refused preflight is no start
    finally:
        faults.restore_link(group.fleet, "spark-1", "spark-2")
    until("up by itself", lambda: group.status().state == "up", 300)


def test_a_node_that_loses_its_power_and_comes_back(group: Real) -> None:
    number, begin = group.status().number, time.monotonic()
    faults.power_cut(group.fleet, "spark-2")
    assert "(spark-2)" in lost(group, number, begin)
    assert group.status().ranks[2].connected is False
    faults.power_on(group.fleet, "spark-2")
    until("up by itself", lambda: group.status().state == "up", 300)


def test_a_frozen_node(group: Real) -> None:
    number, begin = group.status().number, time.monotonic()
    faults.freeze(group.fleet, "spark-1")
    try:
        assert lost(group, number, begin) == "rank 1 (spark-1): silent for 5 s (frozen, or off the network)"
    finally:
        faults.thaw(group.fleet, "spark-1")
    until("no engine on it", lambda: group.status().ranks[1].connected, 20)


def test_a_full_disk_refuses_the_start_and_says_so(group: Real) -> None:
    faults.fill_disk(group.fleet, "spark-1", leave_mib=8)
    try:
        number = group.status().number
        assert group.health() == 200  # what runs goes on
        group.sh("spark-2", f"kill -9 $({SCHEDULER})")
        group.end_of(number)
        until("preflight to refuse", lambda: "spark-1): the disk is full" in group.status().reason, 30)
    finally:
        faults.free_disk(group.fleet, "spark-1")
    until("up by itself", lambda: group.status().state == "up", 300)


def test_stop_leaves_no_engine_and_the_front_says_why(group: Real) -> None:
    rollout.stop(group.runner, group.closures)
    for node in NODES:
        assert group.attempt(node, "pgrep -f [s]glang").stdout == ""
        assert group.sh(node, "systemctl is-active ssh") == "active"
    assert group.health() == 503


def test_the_units_are_what_systemd_likes(group: Real) -> None:
    for node in NODES:
        # There, as programs of a unit must be on the node.
        done = group.attempt(node, f"systemd-analyze verify {group.closures[node]}/units/*")
        assert (done.returncode, [line for line in done.stderr.splitlines() if "sparkserve-" in line]) == (
            0,
            [],
        )
