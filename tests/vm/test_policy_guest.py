"""The host policy of a node on a kernel of its own: what a namespace cannot show. In this order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import guest as machine

from sparkserve.errors import EXIT_CODES
from sparkserve.host import kernel

if TYPE_CHECKING:
    from pathlib import Path

    from guest import Guest

    from sparkserve.plan import Plan

pytest_plugins = ("guest_fixtures",)

# Python under emulation, with its files over 9p: an activation takes half a minute.
SLOW = 600.0


def as_planned(guest: Guest, closure: Path, plan: Plan) -> None:
    """The guest's own programs read what the plan says, and `host status` finds no difference."""
    assert plan.fabric is not None
    for name, value in plan.host.sysctls.items():
        assert guest.sh(f"cat /proc/sys/{kernel.place(name)}").strip() == value, name
    for link in plan.fabric.links:
        assert f" {link.address}/{link.prefix} " in guest.sh(f"ip -o -4 address show dev {link.interface}")
        assert guest.sh(f"cat /sys/class/net/{link.interface}/mtu").strip() == str(plan.fabric.mtu)
    assert set(plan.host.kernel_args) <= set(guest.sh("cat /proc/cmdline").split())
    found = json.loads(guest.sh(f"{closure}/bin/sparkserve host status --json", SLOW))
    assert (found["differences"], found["reboot"], found["edited"]) == ([], [], [])


def test_a_kernel_argument_is_missing_until_the_reboot(guest: Guest, closure: Path, plan: Plan) -> None:
    done = guest.attempt(f"{closure}/bin/activate", SLOW)
    assert done.returncode == EXIT_CODES["NODE.REBOOT"], done.stdout + done.stderr
    assert all(word in done.stderr for word in plan.host.kernel_args)
    assert not set(plan.host.kernel_args) & set(guest.sh("cat /proc/cmdline").split())
    guest.reboot()
    as_planned(guest, closure, plan)


def test_a_blocked_module_is_not_loaded(guest: Guest) -> None:
    assert guest.attempt("modprobe mt7925e").returncode != 0
    assert "mt7925e" not in guest.sh("cat /proc/modules")


def test_sshd_is_asked_also_before_its_socket_has_started_it(guest: Guest) -> None:
    guest.sh("systemctl stop ssh.service; rm -rf /run/sshd; systemctl start sparkserve-reach.service")
    assert guest.sh("systemctl is-active ssh.service").strip() == "active"
    # The status of the service is what `host status` and the next activation read.
    assert guest.sh("systemctl show -P Result sparkserve-reach.service").strip() == "success"


def test_a_power_cut_takes_nothing_away(guest: Guest, closure: Path, plan: Plan) -> None:
    guest.cut()
    guest.start()
    as_planned(guest, closure, plan)


def test_a_kernel_that_stands_still_is_reset_by_the_watchdog(guest: Guest) -> None:
    """Without it, a node that hangs waits for somebody to pull the plug."""
    assert guest.sh("cat /sys/class/watchdog/watchdog0/state").strip() == "active"
    assert guest.sh("cat /sys/class/watchdog/watchdog0/timeout").strip() == "30"
    # A crash that does not reboot by itself: nobody is left who feeds the watchdog.
    guest.attempt(
        "echo 0 >/proc/sys/kernel/panic; echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger", 5
    )
    guest.until_off(machine.BOOT_S)
    guest.start()


def test_deactivation_gives_the_machine_back(guest: Guest, closure: Path, plan: Plan) -> None:
    done = guest.attempt(f"{closure}/bin/deactivate", SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
    guest.reboot()
    assert not set(plan.host.kernel_args) & set(guest.sh("cat /proc/cmdline").split())
    assert guest.sh("ls /etc/systemd/system").count("sparkserve") == 0
    for link in plan.fabric.links if plan.fabric else ():
        assert " inet " not in guest.sh(f"ip -o -4 address show dev {link.interface}")
