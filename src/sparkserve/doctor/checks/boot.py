"""What the next boot does, and how long it takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node


@check(
    "BOOT.TARGET",
    "The node boots into multi-user.target, or what the plan names: a desktop takes memory of the "
    "model's pool.",
    "warning",
    "owen, issues",
    fix="sudo systemctl set-default multi-user.target",
    on="spark",
)
def target(n: Node) -> Verdict:
    try:
        planned = str(n.plan("host", "default_target"))
    except NotApplicable:
        planned = "multi-user.target"
    found = n.run("systemctl", "get-default").strip()
    if not found.endswith(".target"):
        raise Unknown(f"systemctl get-default printed {found[:60]!r}")
    return want(found == planned, expected=planned, found=found, where="systemctl get-default")


@check(
    "BOOT.SPLASH",
    "No splash on the kernel's command line: plymouth then holds the console, and boots waited 98 "
    "minutes for it.",
    "warning",
    "owen",
    # For sh: on Ubuntu that is dash, which ends on what only bash knows, and each later update-grub with it.
    fix="printf '%s\\n' 'GRUB_CMDLINE_LINUX_DEFAULT=\"$(echo \" $GRUB_CMDLINE_LINUX_DEFAULT \" | "
    'sed "s/ splash / /g")"\' | sudo tee -a /etc/default/grub.d/95-local.cfg && sudo update-grub, '
    "then reboot",
    on="spark",
)
def splash(n: Node) -> Verdict:
    running = "splash" in n.cmdline()
    fix = ""
    if running and not re.search(r"^\s*linux\s.*\bsplash\b", n.text("/boot/grub/grub.cfg"), re.M):
        fix = "sudo systemctl reboot: GRUB's configuration is right already"
    found = "splash" if running else "no splash"
    return want(not running, expected="no splash", found=found, where="/proc/cmdline", fix=fix)


@check(
    "BOOT.ORDER",
    "The firmware starts the installed system first: a network entry before it costs a minute of each boot.",
    "warning",
    "owen",
    fix="sudo efibootmgr --bootorder with the number of the ubuntu entry first, then the others",
    on="spark",
)
def order(n: Node) -> Verdict:
    out = n.run("efibootmgr")
    listed = re.search(r"^BootOrder: ([0-9A-F]{4}(?:,[0-9A-F]{4})*)$", out, re.M)
    if not listed:
        raise Unknown("efibootmgr printed no BootOrder")
    first, *rest = listed[1].split(",")
    labels = dict(re.findall(r"^Boot([0-9A-F]{4})\*? (.+)$", out, re.M))
    ours = {number for number, text in labels.items() if re.search(r"(?i)ubuntu|dgx ?os", text)}
    best = next((number for number in rest if number in ours), None)
    fix = (
        "" if best is None else f"sudo efibootmgr --bootorder {','.join([best, *_without(listed[1], best)])}"
    )
    found = f"{first} {labels.get(first, 'without a label').split(chr(9))[0]}"
    return want(first in ours, expected="the ubuntu entry first", found=found, where="efibootmgr", fix=fix)


def _without(order: str, number: str) -> list[str]:
    return [each for each in order.split(",") if each != number]


@check(
    "BOOT.NEXT_ENTRY",
    "No one-time GRUB entry waits: the next boot, which may be a power cut, would start another kernel.",
    "warning",
    "owen",
    fix="sudo grub-editenv - unset next_entry",
    on="spark",
)
def next_entry(n: Node) -> Verdict:
    text = n.text("/boot/grub/grubenv")
    if not text.startswith("# GRUB Environment Block"):
        raise Unknown("/boot/grub/grubenv is no GRUB environment block")
    found = re.search(r"^next_entry=(.+)$", text, re.M)
    shown = found[1] if found else "none"
    return want(found is None, expected="no next_entry", found=shown, where="/boot/grub/grubenv")


@check(
    "BOOT.PLYMOUTH",
    "Waiting for the boot splash to end has a limit of at most 40 s.",
    "warning",
    "owen",
    fix="sudo systemctl edit plymouth-quit-wait.service, and write: [Service] TimeoutStartSec=40",
    on="spark",
)
def plymouth(n: Node) -> Verdict:
    values = n.unit("plymouth-quit-wait.service", "LoadState", "TimeoutStartUSec")
    found = values["TimeoutStartUSec"]
    good = values["LoadState"] in ("not-found", "masked") or _seconds(found) <= 40
    return want(good, expected="at most 40 s", found=found, where="plymouth-quit-wait.service")


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}


def _seconds(text: str) -> float:
    """systemd's `1min 30s` in seconds. Raises `Unknown`."""
    if text == "infinity":
        return float("inf")
    parts = [re.fullmatch(r"(\d+)(us|ms|s|min|h|d)", word) for word in text.split()]
    if not parts or None in parts:
        raise Unknown(f"systemd printed {text[:40]!r} as a time")
    return sum(int(part[1]) * _UNITS[part[2]] for part in parts if part)
