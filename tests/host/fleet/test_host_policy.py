"""The policy of a Spark on laptop nodes: activated, rebooted, cut, interrupted, taken away. No engine. 3 min.

What a node shows is read by programs of the node from /proc, /sys and systemd, not by the code under test.
SPARKSERVE_SEED repeats a run of the interruptions.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import group_fleet
import pytest
from nodes import SSHD, attempt, processes, ssh, until

from sparkserve import nix
from sparkserve.commands import Safety
from sparkserve.fleet import plans
from sparkserve.host import kernel
from sparkserve.local import faults, power, triangle
from sparkserve.pins import fetch
from sparkserve.runner import SSH
from sparkserve.transport import deliver
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine_copy import Copy

    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan

NODES = ("spark-0", "spark-1", "spark-2")
FOREIGN = "/etc/sysctl.d/zz-sparkserve.conf"
# Everything in /etc: kind, mode, owner, target, contents. No times but those of the file above.
TREE = (
    "cd /etc; find . -printf '%p %y %m %U %G %l\\n' | LC_ALL=C sort; "
    "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; stat -c %y sysctl.d/zz-sparkserve.conf"
)


class Policy(NamedTuple):
    """Nodes with the closures in their stores; `before` is /etc of spark-1 before any activation."""

    fleet: Fleet
    closures: dict[str, Path]
    plans: dict[str, Plan]
    before: str

    def activate(self, node: str, *words: str, of: str = "") -> tuple[int, str]:
        """Exit code and all words of an activation."""
        done = attempt(self.fleet, node, " ".join([f"{self.closures[of or node]}/bin/activate", *words]))
        return done.returncode, done.stdout + done.stderr

    def deactivate(self, node: str) -> None:
        ssh(self.fleet, node, f"{self.closures[node]}/bin/deactivate")

    def sh(self, node: str, command: str) -> str:
        return ssh(self.fleet, node, command)

    def booted(self, node: str, was: str) -> None:
        """Wait until the node has another boot than `was`, and is done with it."""
        until(f"{node} to boot", lambda: faults.boot_id(self.fleet, node) not in ("", was), 60)
        until(f"{node} to answer", lambda: attempt(self.fleet, node, "true").returncode == 0, 60)
        until(
            "systemd",
            lambda: "starting" not in attempt(self.fleet, node, "systemctl is-system-running").stdout,
        )
        # Three supervisors would begin a group, and this is about what is below it.
        attempt(self.fleet, node, "systemctl stop sparkserve-rank sparkserve-front")

    def in_effect(self, node: str) -> bool:
        return attempt(self.fleet, node, f"test -L /etc/systemd/system/{RANK}").returncode == 0


RANK = "sparkserve-rank.service"


@pytest.fixture(scope="module")
def policy(triangle_copy: Copy) -> Iterator[Policy]:
    with group_fleet.inside(triangle_copy):
        found = plans.load("local-triangle")
        engine = found[0].engine
        fetch.fetch(["stage0", "base", "tools", "harness", "node", engine.package, engine.model], [], None)
        names = [plan.node.name for plan in found]
        closures = dict(zip(names, addressed(nix.build([plans.host(plan) for plan in found])), strict=True))
        triangle.down("local-triangle", disks=True)
        try:
            fleet = triangle.power_on(found)
            with SSH(fleet.ssh_config, Safety.STOPS_SERVING, fleet.environment) as runner:
                deliver.deliver(runner, closures)
            for node in NODES:
                ssh(
                    fleet, node, f"echo vm.swappiness=42 >{FOREIGN}; chmod 640 {FOREIGN}; chown 7:8 {FOREIGN}"
                )
                ssh(fleet, node, f"touch -d '2020-02-02 02:02:02.123456789' {FOREIGN}")
            yield Policy(fleet, closures, dict(zip(names, found, strict=True)), ssh(fleet, NODES[1], TREE))
        finally:
            triangle.down("local-triangle", disks=True)


def as_planned(policy: Policy, node: str) -> None:
    """Compare what the node's own programs read with the plan."""
    plan = policy.plans[node]
    assert plan.fabric is not None
    for name, value in plan.host.sysctls.items():
        assert policy.sh(node, f"cat /proc/sys/{kernel.place(name)}") == value, name
    for link in plan.fabric.links:
        shown = policy.sh(node, f"ip -o -4 address show dev {link.interface}")
        assert f" {link.address}/{link.prefix} " in shown
        assert policy.sh(node, f"cat /sys/class/net/{link.interface}/mtu") == str(plan.fabric.mtu)
    words = policy.sh(node, "cat /proc/cmdline").split()
    assert set(plan.host.kernel_args) <= set(words)
    assert "splash" not in words
    for unit in plan.host.mask:
        assert policy.sh(node, f"systemctl show -p LoadState --value {unit}") == "masked"
    assert policy.sh(node, "systemctl get-default") == plan.host.default_target
    assert policy.sh(node, "systemctl is-active sparkserve-firewall") == "active"
    assert "iifname" in policy.sh(node, "nft list table inet sparkserve")
    assert policy.sh(node, "systemctl show -p RuntimeWatchdogUSec --value") == "30s"
    assert "startups 64:30:128" in policy.sh(node, "sshd -T | grep -i startups")
    assert policy.sh(node, "systemctl --failed --no-legend") == ""


def test_an_activation_needs_one_reboot_and_then_all_is_as_planned(policy: Policy) -> None:
    planned = policy.activate(NODES[1], "--dry-run")[1]
    assert "/etc/netplan/40-sparkserve-fabric.yaml: nothing -> file" in planned
    assert policy.sh(NODES[1], TREE) == policy.before
    for node in NODES:
        # Its cables have no addresses: the node configures itself.
        assert policy.sh(node, "ip -o -4 address show | grep -c ' 10[.][12]' || true") == "0"
        code, said = policy.activate(node)
        assert (code, "NODE.REBOOT" in said, "with kho=off" in said) == (75, True, True), said
        was = faults.boot_id(policy.fleet, node) or ""
        attempt(policy.fleet, node, "systemctl reboot")
        policy.booted(node, was)
    for node in NODES:
        assert policy.activate(node) == (0, "unchanged\n")
        as_planned(policy, node)
    link = policy.plans["spark-1"].fabric.links[0]  # type: ignore[union-attr]
    ping = f"ping -M do -c 1 -W 2 -I {link.interface} {link.peers[0].address}"
    ssh(policy.fleet, "spark-1", f"{ping} -s 8972")


def test_rdma_devices_are_as_the_plan_names_them(policy: Policy) -> None:
    for link in policy.plans["spark-1"].fabric.links:  # type: ignore[union-attr]
        gid = policy.sh("spark-1", f"cat /sys/class/infiniband/{link.hca}/ports/1/gids/3")
        assert gid.endswith(f"ffff:{link.address.packed[:2].hex()}:{link.address.packed[2:].hex()}")


def test_a_power_cut_right_after_an_activation_keeps_all(policy: Policy) -> None:
    node = NODES[1]
    policy.deactivate(node)
    assert policy.activate(node)[0] == 0
    faults.power_cut(policy.fleet, node)
    faults.power_on(policy.fleet, node)
    policy.booted(node, "")
    assert policy.activate(node) == (0, "unchanged\n")
    as_planned(policy, node)


def test_what_changes_by_hand_is_found_and_named(policy: Policy) -> None:
    node = NODES[1]
    policy.sh(node, "sysctl -w vm.watermark_boost_factor=15000; ip link set enp1s0f0np0 mtu 1500")
    status = json.loads(policy.sh(node, f"{policy.closures[node]}/bin/sparkserve host status --json"))
    assert status["differences"] == [
        "vm.watermark_boost_factor is 15000, not 0",
        "the MTU of enp1s0f0np0 is 1500, not 9000",
    ]
    code, said = policy.activate(node)
    assert (code, "the MTU of enp1s0f0np0 is 1500, not 9000" in said) == (74, True), said
    assert policy.sh(node, "cat /proc/sys/vm/watermark_boost_factor") == "0"
    policy.sh(node, f"netplan apply; echo x >>{FOREIGN}")
    code, said = policy.activate(node)
    assert (code, f"edited by hand: {FOREIGN};" in said or f"edited by hand: {FOREIGN} " in said) == (
        77,
        True,
    ), said
    assert policy.activate(node, "--replace") == (0, "changed\n")
    assert policy.sh(node, "tail -n 1 /var/lib/sparkserve/activation/kept/etc/sysctl.d/*") == "x"
    as_planned(policy, node)


def test_the_closure_of_another_host_is_refused(policy: Policy) -> None:
    with SSH(policy.fleet.ssh_config, Safety.STOPS_SERVING, policy.fleet.environment) as runner:
        deliver.deliver(runner, {"spark-1": policy.closures["spark-0"]})
    tree = policy.sh("spark-1", TREE)
    code, said = policy.activate("spark-1", of="spark-0")
    assert (code, "NODE.CLOSURE" in said, "expected the node spark-0" in said) == (76, True, True), said
    assert policy.sh("spark-1", TREE) == tree


def test_an_sshd_that_hangs_is_started_again(policy: Policy) -> None:
    hanging = set(processes(policy.fleet.names, NODES[1], SSHD))
    for process in hanging:
        process.send(signal.SIGSTOP)
    try:
        # A minute to the next look, three tries of at most 18 s. Sessions stay what they are.
        until("another sshd", lambda: bool({*processes(policy.fleet.names, NODES[1], SSHD)} - hanging), 180)
    finally:
        for process in hanging:
            process.send(signal.SIGCONT)
    assert "it is started again" in policy.sh(NODES[1], "journalctl -u sparkserve-reach.service -o cat")


def test_deactivation_restores_the_node_byte_for_byte(policy: Policy) -> None:
    policy.deactivate(NODES[1])
    assert policy.sh(NODES[1], TREE) == policy.before
    assert policy.sh(NODES[1], "nft list ruleset; systemctl list-units --no-legend 'sparkserve*'") == ""
    # The reboot that comes some day finds the arguments of the distribution.
    assert "splash" in policy.sh(NODES[1], "cat /boot/grub/grub.cfg")
    assert policy.activate(NODES[1])[0] == 0


def test_interrupted_at_random_it_is_finished_or_undone(policy: Policy) -> None:
    seed = int(os.environ.get("SPARKSERVE_SEED", time.time_ns() % 1_000_000))
    sys.stderr.write(f"SPARKSERVE_SEED={seed}\n")
    choose = random.Random(seed)  # noqa: S311 - to be repeated
    node, killed = NODES[1], 0
    lasts = {}
    for what in ("deactivate", "activate"):
        begin = time.monotonic()
        attempt(policy.fleet, node, f"{policy.closures[node]}/bin/{what}")
        lasts[what] = time.monotonic() - begin
    for _ in range(8):
        what = "deactivate" if policy.in_effect(node) else "activate"
        seconds = choose.uniform(0.1, lasts[what])
        program = policy.closures[node] / "bin" / what
        done = attempt(policy.fleet, node, f"timeout -s KILL {seconds:.2f} {program}")
        killed += done.returncode not in (0, 75)
        if choose.random() < 0.25:
            faults.power_cut(policy.fleet, node)
            faults.power_on(policy.fleet, node)
            policy.booted(node, "")
        if choose.random() < 0.5:
            policy.deactivate(node)
            assert policy.sh(node, TREE) == policy.before
        else:
            code, said = policy.activate(node)
            assert code in (0, 75), said
            files = policy.plans[node].host.files
            assert policy.sh(node, f"sha256sum {' '.join(files)} | wc -l") == str(len(files))
            assert policy.activate(node)[0] == code
    assert killed >= 2
    policy.deactivate(node)
    assert policy.sh(node, TREE) == policy.before
    policy.activate(node)


EATER = """
import mmap, sys, time
kept = []
for _ in range(4096):
    kept.append(mmap.mmap(-1, 8 << 20))
    for page in range(0, 8 << 20, 4096):
        kept[-1][page] = 1
    time.sleep(0.004)
"""
FEEDER = """
import glob, os, re, sys, time
begin = 2000 << 10
text = open('/proc/meminfo').read()
lowest = begin
def put(kib):
    new = re.sub(r'(MemAvailable: +)[0-9]+', lambda m: m[1] + str(kib).rjust(8), text)
    os.pwrite(fd, new.ljust(len(text) + 8).encode(), 0)
fd = os.open('/run/meminfo', os.O_RDWR | os.O_CREAT, 0o644)
put(begin)
open('/run/feeding', 'w').close()
end = time.monotonic() + 60
cgroup = sys.argv[1]
while time.monotonic() < end and not os.path.exists('/run/fed'):
    taken = 0
    for pid in open(cgroup + '/cgroup.procs').read().split():
        try:
            taken += int(open(f'/proc/{pid}/statm').read().split()[1]) * 4
        except OSError:
            pass
    put(begin - taken)
    lowest = min(lowest, begin - taken)
    time.sleep(0.001)
print(lowest >> 10)
"""


def test_an_engine_that_eats_memory_is_killed_before_the_floor_while_sshd_answers(policy: Policy) -> None:
    node, cgroup = NODES[1], "/sys/fs/cgroup/systemd/system.slice/sparkserve-rank.service/engine"
    guard = policy.plans[node].host.units["sparkserve-guard.service"]
    floor = int(guard.split("--startup ")[1].split(",")[0])
    sh, program = policy.sh, f"{policy.closures[node]}/bin/guard"
    for name, text in (("eater", EATER), ("feeder", FEEDER)):
        sh(node, f"cat >/run/{name}.py <<'END'\n{text}\nEND")
    # The machine has gigabytes to give: what the guard reads is 2000 MiB less what the engine really took.
    sh(node, f"mkdir -p {cgroup}; rm -f /run/fed; cp /proc/meminfo /run/meminfo")
    lowest: list[int] = []
    feeder = threading.Thread(
        target=lambda: lowest.append(int(sh(node, f"python3 /run/feeder.py {cgroup}").splitlines()[-1]))
    )
    feeder.start()
    try:
        until("the feeder", lambda: attempt(policy.fleet, node, "test -e /run/feeding").returncode == 0)
        sh(node, "mount --bind /run/meminfo /proc/meminfo; systemctl start sparkserve-guard")
        answers: list[float] = []
        ended = threading.Event()

        def knock() -> None:
            while not ended.is_set():
                begin = time.monotonic()
                assert power.answers(policy.fleet, node)
                answers.append(time.monotonic() - begin)
                time.sleep(0.05)

        knocking = threading.Thread(target=knock)
        knocking.start()
        eaten = attempt(
            policy.fleet, node, f"{program} --enter {cgroup} /usr/bin/python3 /run/eater.py; echo $?"
        )
        time.sleep(0.3)
        ended.set()
        knocking.join()
    finally:
        attempt(policy.fleet, node, "touch /run/fed; umount /proc/meminfo; systemctl stop sparkserve-guard")
        feeder.join()
    sys.stderr.write(f"lowest {lowest[0]} MiB of a floor of {floor}; sshd {max(answers):.3f} s\n")
    assert eaten.stdout == "137\n", eaten
    assert floor <= lowest[0] < floor + 400
    assert max(answers) < 1
