"""Real nodes: three systemds on this machine, their network and disks, and what can happen to them. 60 s."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import nodes
import pytest
from nodes import attempt, ssh, until

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.local import disk, faults, keeper, leftovers, power, triangle
from sparkserve.local.boot import Sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.local.record import Fleet

NODES = ("spark-0", "spark-1", "spark-2")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    plans = nodes.plans("nodes", "10.79.31")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(nodes.ROOT))
        try:
            yield triangle.power_on(plans)
        finally:
            triangle.down(plans[0].fleet.name, disks=True)


@pytest.fixture(autouse=True)
def whole(fleet: Fleet) -> None:
    """Every test begins with three nodes that answer, and a keeper."""
    status = triangle.status(fleet.name)
    if not (status.keeper and all(each.answers for each in status.nodes)) or not status.nodes:
        triangle.power_on(fleet.plans)


def carrier(fleet: Fleet, node: str, interface: str) -> str:
    return ssh(fleet, node, f"cat /sys/class/net/{interface}/carrier")


@pytest.mark.parametrize("node", NODES)
def test_a_node_is_a_booted_host_of_its_own(fleet: Fleet, node: str) -> None:
    until(
        "systemd to be done",
        lambda: "starting" not in attempt(fleet, node, "systemctl is-system-running").stdout,
    )
    assert ssh(fleet, node, "systemctl is-system-running; uname -n") == f"running\n{node}"
    assert ssh(fleet, node, "cat /proc/1/comm") == "systemd"
    assert float(ssh(fleet, node, "cut -d. -f1 /proc/uptime")) < 300
    assert ssh(fleet, node, "cat /proc/sys/kernel/random/boot_id") == faults.boot_id(fleet, node)
    assert ssh(fleet, node, "ls /nix/store; ls /work 2>/dev/null || true") == ""
    other = NODES[(NODES.index(node) + 1) % 3]
    assert ssh(fleet, node, f"getent hosts {other}").split()[0] == f"10.79.31.{NODES.index(other) + 1}"


def test_it_boots_in_seconds(fleet: Fleet) -> None:
    triangle.down(fleet.name)
    begin = time.monotonic()
    triangle.power_on(fleet.plans)
    # 1.4 s on two idle cores; with other work beside it, 8 s were seen.
    assert time.monotonic() - begin < 20


def test_host_keys_are_pinned(fleet: Fleet) -> None:
    known = fleet.names.folder / "known_hosts"
    right = known.read_text()
    mine, other = (line.split()[2] for line in right.splitlines()[:2])
    known.write_text(right.replace(mine, other))
    try:
        argv = ["ssh", "-F", str(fleet.ssh_config), "-o", "ControlPath=none", "spark-0", "true"]
        done = subprocess.run(argv, env=fleet.environment, capture_output=True, text=True)
        assert done.returncode == 255
        assert "Host key verification failed" in done.stderr
    finally:
        known.write_text(right)


@pytest.mark.parametrize("node", NODES)
def test_cables_pass_9000_bytes_and_no_more(fleet: Fleet, node: str) -> None:
    links = fleet.plan(node).fabric
    assert links is not None
    assert len(links.links) == 4
    for link in links.links:
        ping = f"ping -M do -c 1 -I {link.interface} {link.peers[0].address}"
        ssh(fleet, node, f"{ping} -W 2 -s 8972")
        assert "mtu=9000" in attempt(fleet, node, f"{ping} -W 0.1 -s 8973").stderr


def test_bytes_are_counted_on_the_interface_that_they_took(fleet: Fleet) -> None:
    before = faults.counters(fleet, "spark-0")
    ssh(fleet, "spark-0", "ping -c 10 -i 0.01 -s 8000 10.12.1.2")
    after = faults.counters(fleet, "spark-0")
    sent = {name: after[name].sent - before[name].sent for name in after}
    assert sent["enP2p1s0f0np0"] > 80_000
    assert all(sent[name] < 2_000 for name in ("enp1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"))


def test_shared_memory_and_limits_are_the_nodes_own(fleet: Fleet) -> None:
    ssh(fleet, "spark-0", "echo 1 >/dev/shm/mine")
    assert attempt(fleet, "spark-1", "cat /dev/shm/mine").returncode == 1
    assert not Path("/dev/shm/mine").exists()  # noqa: S108
    assert ssh(fleet, "spark-0", "df -m --output=size /dev/shm | tail -1").strip() == "1024"
    limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true"
    assert ssh(fleet, "spark-0", limit) == str(4096 << 20)
    taken = attempt(
        fleet,
        "spark-0",
        "systemd-run --quiet --wait --property=MemoryMax=50M python3 -c 'bytearray(200 << 20)'",
    )
    assert taken.returncode != 0


def test_the_machine_is_out_of_reach(fleet: Fleet) -> None:
    swappiness = Path("/proc/sys/vm/swappiness").read_text()
    # A node has settings of its own, which no namespace gives.
    assert ssh(fleet, "spark-0", "sysctl -w vm.swappiness=7; cat /proc/sys/vm/swappiness").endswith("\n7")
    assert ssh(fleet, "spark-1", "cat /proc/sys/vm/swappiness") == swappiness.strip()
    ssh(fleet, "spark-0", "echo 1 >/proc/sys/vm/drop_caches")
    for order in (
        "date -s 2020-01-01",
        "dmesg",
        "echo x >/proc/sys/kernel/core_pattern",
    ):
        assert attempt(fleet, "spark-0", order).returncode != 0, order
    assert Path("/proc/sys/vm/swappiness").read_text() == swappiness


def test_nix_copies_over_ssh_into_the_nodes_own_store(fleet: Fleet) -> None:
    path = nodes.busybox()
    argv = ["nix", "--extra-experimental-features", "nix-command", "copy", "--to", "ssh://spark-1", path]
    subprocess.run(argv, env=fleet.environment, check=True, capture_output=True)
    ssh(fleet, "spark-1", f"nix-store --verify-path {path} && {path}/busybox true")
    assert attempt(fleet, "spark-2", f"ls {path}").returncode != 0


def test_a_power_cut_loses_what_was_not_synced(fleet: Fleet) -> None:
    ssh(fleet, "spark-1", "echo kept >/root/synced && sync && cp /root/synced /root/lost")
    before = faults.boot_id(fleet, "spark-1")
    faults.power_cut(fleet, "spark-1")
    assert not any(status.on for status in triangle.status(fleet.name).nodes if status.node == "spark-1")
    # Its peers still have the interface, without a carrier.
    assert carrier(fleet, "spark-0", "enp1s0f0np0") == "0"
    assert carrier(fleet, "spark-2", "enp1s0f1np1") == "0"
    assert carrier(fleet, "spark-0", "enp1s0f1np1") == "1"
    faults.power_on(fleet, "spark-1")
    assert faults.boot_id(fleet, "spark-1") != before
    assert ssh(fleet, "spark-1", "cat /root/synced; stat -c %s /root/lost 2>/dev/null || echo 0") == "kept\n0"
    assert carrier(fleet, "spark-0", "enp1s0f0np0") == "1"
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.12.0.2")


def test_a_power_cycle_keeps_the_disk_and_the_addresses(fleet: Fleet) -> None:
    mac = ssh(fleet, "spark-2", "cat /sys/class/net/*/address | sort")
    ssh(fleet, "spark-2", "echo kept >/root/file")
    faults.power_cycle(fleet, "spark-2")
    assert ssh(fleet, "spark-2", "cat /root/file; journalctl --list-boots | wc -l").splitlines()[0] == "kept"
    assert int(ssh(fleet, "spark-2", "journalctl --list-boots | wc -l")) > 1
    assert ssh(fleet, "spark-2", "cat /sys/class/net/*/address | sort") == mac


def test_a_reboot_from_inside_is_followed_and_a_poweroff_is_not(fleet: Fleet) -> None:
    before = faults.boot_id(fleet, "spark-1")
    attempt(fleet, "spark-1", "systemctl reboot")
    until("another boot", lambda: faults.boot_id(fleet, "spark-1") not in (before, None))
    power.wait(fleet, "spark-1")
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.12.0.2")
    attempt(fleet, "spark-1", "systemctl poweroff")
    until("off", lambda: power.init(fleet, "spark-1") is None)
    until("no carrier", lambda: carrier(fleet, "spark-0", "enp1s0f0np0") == "0")
    assert not keeper.wanted(fleet, "spark-1")


def test_a_cut_cable_has_no_carrier_at_either_end(fleet: Fleet) -> None:
    faults.cut_link(fleet, "spark-0", "spark-2", stripe=1)
    assert carrier(fleet, "spark-0", "enP2p1s0f1np1") == "0"
    assert carrier(fleet, "spark-2", "enP2p1s0f0np0") == "0"
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.13.0.3")
    faults.power_cycle(fleet, "spark-2")
    assert carrier(fleet, "spark-0", "enP2p1s0f1np1") == "0"
    faults.restore_link(fleet, "spark-0", "spark-2")
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.13.1.3")
    with pytest.raises(SparkserveError, match="a cable between spark-0 and spark-0"):
        faults.cut_link(fleet, "spark-0", "spark-0")


def test_a_bad_cable_loses_packets_or_is_slow(fleet: Fleet) -> None:
    faults.degrade_link(fleet, "spark-0", "spark-1", stripe=0, loss_percent=50)
    lost = attempt(fleet, "spark-0", "ping -q -c 40 -i 0.01 -W 1 10.12.0.2").stdout
    assert 30 <= int(lost.split("% packet loss")[0].split()[-1].partition(".")[0]) <= 100
    ssh(fleet, "spark-0", "ping -q -c 5 -i 0.01 10.12.1.2 | grep -q ' 0% packet loss'")
    faults.degrade_link(fleet, "spark-0", "spark-2", mbit=20)
    assert sends(fleet) > 1.0  # 4 MB, and 1 MB of it at once
    faults.restore_link(fleet, "spark-0", "spark-1")
    faults.restore_link(fleet, "spark-0", "spark-2")
    assert sends(fleet) < 0.5
    ssh(fleet, "spark-0", "ping -q -c 20 -i 0.01 10.12.0.2 | grep -q ' 0% packet loss'")


def sends(fleet: Fleet) -> float:
    """Seconds to send 4 MB from spark-0 to spark-2 on one stripe."""
    receive = (
        "s = socket.create_server(('10.13.0.3', 7000)).accept()[0]; "
        "[0 for _ in iter(lambda: s.recv(65536), b'')]; s.sendall(b'x')"
    )
    send = (
        "s = socket.create_connection(('10.13.0.3', 7000)); b = time.time(); s.sendall(bytes(4000000)); "
        "s.shutdown(socket.SHUT_WR); s.recv(1); print(time.time() - b)"
    )
    ssh(fleet, "spark-2", f'systemd-run --quiet --collect python3 -c "import socket; {receive}"')
    until("a listener", lambda: "7000" in ssh(fleet, "spark-2", "ss -tln"))
    return float(ssh(fleet, "spark-0", f'python3 -c "import socket, time; {send}"'))


def test_a_full_disk(fleet: Fleet) -> None:
    faults.fill_disk(fleet, "spark-2")
    done = attempt(fleet, "spark-2", "head -c 1000000 /dev/zero >/root/more")
    assert "No space left on device" in done.stderr
    faults.free_disk(fleet, "spark-2")
    faults.fill_disk(fleet, "spark-2", leave_mib=10)
    ssh(fleet, "spark-2", "head -c 1000000 /dev/zero >/root/more")
    faults.free_disk(fleet, "spark-2")


def test_a_frozen_node_says_nothing_until_it_is_thawed(fleet: Fleet) -> None:
    faults.freeze(fleet, "spark-2")
    assert not power.answers(fleet, "spark-2")
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.13.0.3")
    faults.thaw(fleet, "spark-2")
    ssh(fleet, "spark-2", "true")
    faults.freeze(fleet, "spark-2")
    faults.power_cut(fleet, "spark-2")
    faults.power_on(fleet, "spark-2")


def test_the_public_port_reaches_the_head(fleet: Fleet) -> None:
    port = fleet.plans[0].serving.port
    serve = f"systemd-run --quiet --unit=web python3 -m http.server -b 127.0.0.1 -d /etc {port}"
    with socket.create_connection(("127.0.0.1", port), timeout=5) as early:
        assert early.recv(1) == b""
    ssh(fleet, "spark-0", serve)
    until("an answer", lambda: b"spark-0" in get(port))
    # A client that stays after the head has lost its power pins nothing that the head needs again.
    with socket.create_connection(("127.0.0.1", port), timeout=5) as stays:
        stays.sendall(b"GET")
        faults.power_cut(fleet, "spark-0")
        assert get(port) == b""
        faults.power_on(fleet, "spark-0")
        ssh(fleet, "spark-0", f"ping -c 1 -W 2 10.12.0.2; {serve}")
        until("an answer", lambda: b"spark-0" in get(port))


def get(port: int) -> bytes:
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            connection.sendall(b"GET /hostname HTTP/1.0\r\n\r\n")
            while chunk := connection.recv(4096):
                found += chunk
        except ConnectionError:
            pass
    return found


def test_a_killed_starter_or_keeper_stops_no_node(fleet: Fleet) -> None:
    ids = [faults.boot_id(fleet, node) for node in NODES]
    beside = fleet.cgroups.pids(f"{fleet.names.group}/beside")
    guard = keeper.find(fleet.names)
    assert guard is not None
    assert guard.pid in beside
    for pid in beside:
        subprocess.run(["kill", "-9", str(pid)], check=True)
    guard.wait(5)
    assert keeper.find(fleet.names) is None
    assert [faults.boot_id(fleet, node) for node in NODES] == ids
    triangle.power_on(fleet.plans)
    assert keeper.find(fleet.names) is not None
    assert [faults.boot_id(fleet, node) for node in NODES] == ids
    # The new keeper follows nodes that it did not start.
    attempt(fleet, "spark-0", "systemctl reboot")
    until("another boot", lambda: faults.boot_id(fleet, "spark-0") not in (ids[0], None))


def test_a_killed_pid_1_is_a_reset(fleet: Fleet) -> None:
    before = faults.boot_id(fleet, "spark-0")
    process = power.init(fleet, "spark-0")
    assert process is not None
    process.send(signal.SIGKILL)
    until("another boot", lambda: faults.boot_id(fleet, "spark-0") not in (before, None))


def test_a_node_that_only_reboots_is_left_off(fleet: Fleet) -> None:
    unit = (
        "[Service]\\nExecStart=/usr/bin/systemctl reboot --force\\n[Install]\\nWantedBy=multi-user.target\\n"
    )
    ssh(fleet, "spark-1", f"printf '{unit}' >/etc/systemd/system/again.service; systemctl enable again; sync")
    attempt(fleet, "spark-1", "systemctl start again")
    log = fleet.names.folder / "keeper.log"
    try:
        until("given up", lambda: "spark-1 stays off: 5 ends before in 60 s" in log.read_text(), 60)
        assert power.init(fleet, "spark-1") is None
    finally:
        triangle.down(fleet.name, disks=True)


def test_other_sizes_make_the_nodes_anew(fleet: Fleet) -> None:
    other = triangle.power_on(fleet.plans, Sizes(shm_mib=64))
    assert ssh(other, "spark-0", "df -m --output=size /dev/shm | tail -1").strip() == "64"


def test_a_pulled_management_cable(fleet: Fleet) -> None:
    faults.cut_management(fleet, "spark-1")
    assert not power.answers(fleet, "spark-1")
    ssh(fleet, "spark-0", "ping -c 1 -W 2 10.12.0.2; ! ping -c 1 -W 1 10.79.31.2")
    faults.restore_management(fleet, "spark-1")
    power.wait(fleet, "spark-1")


def test_two_fleets_side_by_side_and_none_in_a_taken_network(fleet: Fleet) -> None:
    with pytest.raises(SparkserveError) as caught:
        triangle.power_on(nodes.plans("taken", "10.79.31"))
    assert caught.value.id == "HOST.NETWORK"
    assert "10.79.31.254/24 on spk-" in caught.value.found
    taken = nodes.plans("taken", "10.79.31")[0].fleet.name
    assert leftovers.find(triangle.names(taken)) == []
    triangle.down(taken, disks=True)
    second = triangle.power_on(nodes.plans("second", "10.79.32"))
    try:
        assert ssh(second, "spark-1", "ping -q -c 1 -W 2 10.12.0.1 >/dev/null; uname -n") == "spark-1"
        assert ssh(fleet, "spark-1", "uname -n") == "spark-1"
    finally:
        triangle.down(second.name, disks=True)
    assert leftovers.find(second.names) == []
    ssh(fleet, "spark-1", "ping -q -c 1 -W 2 10.12.0.1")


def test_a_checkout_in_a_folder_with_an_odd_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "state", lambda: tmp_path / "a b,c%d:é")
    plans = nodes.plans("odd", "10.79.34")
    try:
        odd = triangle.power_on(plans)
        argv = ["nix", "--extra-experimental-features", "nix-command", "copy", "--to", "ssh://spark-2"]
        subprocess.run([*argv, nodes.busybox()], env=odd.environment, check=True, capture_output=True)
        assert ssh(odd, "spark-2", "ls /nix/store") == Path(nodes.busybox()).name
    finally:
        triangle.down(plans[0].fleet.name, disks=True)
    assert leftovers.find(odd.names) == []


def test_down_leaves_nothing(fleet: Fleet) -> None:
    assert len(leftovers.find(fleet.names)) > 20
    assert triangle.down(fleet.name)
    assert leftovers.find(fleet.names) == []
    assert disk.loops(fleet.names.folder) == []
    assert not triangle.down(fleet.name)
    assert triangle.status(fleet.name).nodes == ()
