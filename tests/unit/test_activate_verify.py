"""An activation reads the node afterwards: it names what is not as planned, and a missing boot apart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from host_node import POLICY, Node, closure
from test_activate import WANTS

from sparkserve.errors import SparkserveError
from sparkserve.host import kernel
from sparkserve.host.activate import activate, main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAEMON = "[Service]\nExecStart=/bin/guard\n[Install]\nWantedBy=multi-user.target\n"


def bring(tmp_path: Path, break_it: Callable[[Node], object]) -> SparkserveError:
    """The error of an activation on a node that `break_it` spoiled."""
    node = Node(tmp_path / "node")
    node.write("/proc/sys/vm/swappiness", "60\n")
    node.write("/proc/sys/net/ipv4/tcp_rmem", "1 2 3\n")
    break_it(node)
    units = {**WANTS["units"], "guard.service": DAEMON}
    with pytest.raises(SparkserveError) as caught:
        activate(node.system, closure(tmp_path / "one", **{**WANTS, "units": units}))
    return caught.value


def set_mtu(node: Node) -> None:
    next(link for link in node.links if link.get("ifname") == "enp1s0f0np0")["mtu"] = 1500


def lose_address(node: Node) -> None:
    next(link for link in node.links if link.get("ifname") == "enP7s7")["addr_info"] = []


def lose_link(node: Node) -> None:
    node.links = [link for link in node.links if link.get("ifname") != "enp1s0f1np1"]


def keep_old_units(node: Node) -> None:
    node.stale = True


def keep_running(node: Node) -> None:
    node.ran.add("cups.service")
    node.breaks = {"systemctl stop": "cups.service refuses"}


@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        (set_mtu, "the MTU of enp1s0f0np0 is 1500, not 9000"),
        (lose_address, "the address of enP7s7 is none, not 10.77.0.1/24"),
        (lose_link, "the interface enp1s0f1np1 is missing, not there"),
        (
            lambda node: node.system.at("/proc/sys/vm/swappiness").unlink(),
            "vm.swappiness is unknown to this kernel",
        ),
        (
            lambda node: node.failed.add("guard.service"),
            "guard.service is failed (exit-code), not without failure",
        ),
        (lambda node: node.failed.add("sparkserve-clocks.service"), "sparkserve-clocks.service is failed"),
        (keep_old_units, "sparkserve-rank.service is another one in systemd"),
        (keep_running, "cups.service refuses"),
    ],
)
def test_each_difference_is_named(tmp_path: Path, break_it: Callable[[Node], object], found: str) -> None:
    error = bring(tmp_path, break_it)
    assert (error.id, error.exit_code) == ("NODE.ACTIVATE", 74)
    assert found in error.found


def test_all_differences_in_one_message(tmp_path: Path) -> None:
    def both(node: Node) -> None:
        set_mtu(node)
        lose_address(node)

    assert bring(tmp_path, both).found.count(", not ") == 2


def test_a_missing_kernel_argument_is_a_state_of_its_own(tmp_path: Path) -> None:
    error = bring(tmp_path, lambda node: node.write("/proc/cmdline", "quieter\n"))
    assert (error.id, error.exit_code) == ("NODE.REBOOT", 75)
    assert error.found == "the kernel's command line is without it, not with quiet; all else is"


NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.178.04  Release Build\n"


@pytest.mark.parametrize(
    ("kernel_", "found"),
    [
        ({"release": "7.0.0-1020-nvidia"}, "75 the kernel is 7.0.0-1019-nvidia, not 7.0.0-1020-nvidia"),
        ({"page_size": 69632 - os.sysconf("SC_PAGE_SIZE")}, "75 the page size is"),
        ({"driver": "595"}, "74 the NVIDIA driver is 580.178.04, not 595"),
        ({"driver": "58"}, "74 the NVIDIA driver is 580.178.04, not 58"),
        ({"driver": "580.178.04"}, ""),
    ],
)
def test_the_kernel_and_the_driver(tmp_path: Path, kernel_: dict[str, object], found: str) -> None:
    node = Node(tmp_path / "node")
    node.write("/proc/driver/nvidia/version", NVRM)
    wanted = {"release": None, "page_size": os.sysconf("SC_PAGE_SIZE"), "driver": "580", **kernel_}
    one = closure(tmp_path / "one", kernel=wanted)
    if not found:
        assert activate(node.system, one) is True
        return
    with pytest.raises(SparkserveError) as caught:
        activate(node.system, one)
    assert f"{caught.value.exit_code} {caught.value.found}".startswith(found)


def test_a_difference_counts_more_than_a_missing_boot(tmp_path: Path) -> None:
    def both(node: Node) -> None:
        node.write("/proc/cmdline", "\n")
        set_mtu(node)

    assert bring(tmp_path, both).id == "NODE.ACTIVATE"


def test_an_older_version_of_ip_is_understood(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    # Empty entries and missing fields are in Node.links; here the rest of them goes.
    for link in node.links:
        link.pop("mtu", None) if link.get("ifname") == "enP7s7" else None
    assert activate(node.system, closure(tmp_path / "one", units={"a.service": POLICY})) is True


def test_how_sysctl_names_become_paths() -> None:
    assert kernel.place("net.ipv4.conf.enp1s0f0np0.arp_ignore") == "net/ipv4/conf/enp1s0f0np0/arp_ignore"
    assert kernel.place("net.ipv4.conf.eth0/100.rp_filter") == "net/ipv4/conf/eth0.100/rp_filter"


@pytest.mark.parametrize("name", ["vm.//.//.//.etc.hostname", ".etc.hostname", "vm.", "vm..x", "/.x", ""])
def test_a_sysctl_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    # A record of an earlier activation is a file too: what it names is written back.
    node = Node(tmp_path / "node")
    with pytest.raises(SparkserveError, match="expected a sysctl below /proc/sys"):
        kernel.write(node.system, name, "1")


@pytest.mark.parametrize(
    "host",
    [
        {"files": {"/etc/systemd/system/a.service": "x"}, "units": {"a.service": POLICY}},
        {"units": {"a.service": POLICY}, "mask": ["a.service"]},
        {"units": {"default.target": POLICY}, "default_target": "multi-user.target"},
        {"files": {"/etc/systemd/system/a.service/b": "x"}, "mask": ["a.service"]},
        {"files": {"/etc/systemd/system/multi-user.target.wants": "x"}, "units": {"a.service": POLICY}},
    ],
)
def test_a_path_is_one_thing(tmp_path: Path, host: dict[str, Any]) -> None:
    node = Node(tmp_path / "node")
    before = node.tree()
    with pytest.raises(SparkserveError, match="one thing at /etc/systemd/system/"):
        activate(node.system, closure(tmp_path / "one", **host))
    assert node.tree() == before


def test_a_unit_is_enabled_beside_the_units(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    text = "[Service]\nExecStart=/bin/x\n[Install]\nWantedBy=multi-user.target ../../cron.d/x\n"
    with pytest.raises(SparkserveError, match=r"names of units in \[Install\] of a\.service"):
        activate(node.system, closure(tmp_path / "one", units={"a.service": text}))
    assert not node.system.at("/etc/cron.d").exists()


@pytest.mark.parametrize(
    ("argv", "code"), [(["--help"], 0), (["--wrong"], 2), (["--replace"], 2), (["--dry-run", "--json"], 35)]
)
def test_the_programs_words(
    argv: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = "deactivate" if argv == ["--replace"] else "activate"
    with pytest.raises(SystemExit) as caught:
        main(str(tmp_path), what, argv)
    assert caught.value.code == code
    said = capsys.readouterr()
    assert (
        "--dry-run  Say what would change" in said.out + said.err
        if code != 35
        else '"PLAN.SCHEMA"' in said.out
    )
