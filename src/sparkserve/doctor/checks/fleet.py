"""What must be equal on all nodes: asked of the others over ssh, which is why these need --live."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Unknown, Verdict, check, quoted, want
from sparkserve.doctor.guard import REMOTE, SSH
from sparkserve.doctor.node import number

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

TRUE, RELEASE, PAGES, DRIVER, CLOSURE, THP, SECURE, CLOCK, FLEET_ID = REMOTE


def _peers(n: Node) -> dict[str, str]:
    """Address by name of the other nodes."""
    ours = n.plan("node", "name")
    found = {str(e["name"]): str(e["address"]) for e in n.plan("fleet", "nodes") if e["name"] != ours}
    if not found:
        raise NotApplicable("the fleet has one node")
    return found


def _ask(n: Node, question: str) -> dict[str, str]:
    """The answer of every other node. Raises `Unknown` when one cannot be asked: never a silent pass."""
    found = {}
    for name, address in _peers(n).items():
        code, out = n.answer(*SSH, address, question)
        if code == 255:
            raise Unknown(f"{name} cannot be asked over ssh: see FLEET.SSH")
        found[name] = out.strip() if code == 0 else f"nothing (exit {code})"
    return found


def _same(n: Node, question: str, here: str, what: str) -> Verdict:
    others = _ask(n, question)
    if silent := [name for name, value in others.items() if not value]:
        raise Unknown(f"{silent[0]} answered nothing")
    if not here:
        raise Unknown(f"{what} is empty")
    differ = [f"{name} has {value[:80]}" for name, value in others.items() if value != here]
    found = "; ".join(differ) or f"{here} on all"
    return want(not differ, expected=f"{here} on all nodes", found=found, where=what)


@check(
    "FLEET.SSH",
    "Every other node can be logged in to without a question, and is the one that was there before.",
    "error",
    "mia, owen",
    fix="ssh ADDRESS true shows the reason; ssh-copy-id ADDRESS brings the key there",
    live=True,
)
def ssh(n: Node) -> Verdict:
    wrong, fix = [], []
    for name, address in _peers(n).items():
        code, out = n.answer(*SSH, address, TRUE)
        if code != 0:
            wrong.append(f"{name}: {' '.join(out.split())[-100:] or code}")
            fix.append(f"ssh-copy-id {quoted(address)} && ssh {quoted(address)} true")
    found = "; ".join(wrong) or "all answer"
    return want(not wrong, expected="all answer", found=found, where="ssh", fix="; ".join(fix))


@check(
    "FLEET.KERNEL",
    "All nodes run one kernel.",
    "error",
    "owen",
    fix=f"set kernel.release in fleet.nix, {RESTARTED}, and reboot the nodes one at a time",
    live=True,
)
def kernel(n: Node) -> Verdict:
    return _same(n, RELEASE, n.release(), "/proc/sys/kernel/osrelease")


@check(
    "FLEET.PAGES",
    "All nodes have one page size.",
    "error",
    "owen",
    fix="boot the same kernel on all nodes",
    live=True,
)
def pages(n: Node) -> Verdict:
    return _same(n, PAGES, str(n.page_size()), "getconf PAGESIZE")


@check(
    "FLEET.DRIVER",
    "All nodes have one GPU driver loaded.",
    "error",
    "owen, mia",
    fix="sudo apt install the same driver on all nodes, then reboot them with the group stopped",
    on="spark",
    live=True,
)
def driver(n: Node) -> Verdict:
    return _same(n, DRIVER, n.text("/sys/module/nvidia/version").strip(), "/sys/module/nvidia/version")


@check(
    "FLEET.THP",
    "Transparent huge pages are set alike on all nodes.",
    "warning",
    "owen",
    fix="set it alike in a unit at boot, or in the kernel's arguments, on all nodes",
    on="spark",
    live=True,
)
def thp(n: Node) -> Verdict:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    return _same(n, THP, n.text(path).strip(), path)


@check(
    "FLEET.SECURE_BOOT",
    "Secure Boot is on, or off, on all nodes: a module signed for one does not load on another.",
    "warning",
    "owen",
    fix="change it in the firmware of the node that differs",
    on="spark",
    live=True,
)
def secure_boot(n: Node) -> Verdict:
    return _same(n, SECURE, n.run("mokutil", "--sb-state").strip(), "mokutil --sb-state")


@check(
    "FLEET.PROFILE",
    "Every other node is set to a closure that is there.",
    "error",
    "issues",
    fix="./sparkserve up: it brings the closure to every node that lacks it",
    live=True,
)
def profile(n: Node) -> Verdict:
    wrong = [
        f"{name} has {value[:80] or 'none'}"
        for name, value in _ask(n, CLOSURE).items()
        if not re.fullmatch(r"/nix/store/[a-z0-9]{32}-\S+", value)
    ]
    found = "; ".join(wrong) or "all have one"
    return want(
        not wrong, expected="a closure on each node", found=found, where="/nix/var/nix/profiles/sparkserve"
    )


@check(
    "FLEET.ID",
    "All nodes are set to one fleet id: with another build or plan on one rank a group hangs, or "
    "answers wrongly.",
    "error",
    "mia, issues",
    fix="./sparkserve up: it brings the same closures to all nodes",
    live=True,
)
def fleet_id(n: Node) -> Verdict:
    path = "/nix/var/nix/profiles/sparkserve/closure.json"
    if not n.exists(path):
        raise NotApplicable("no closure was ever activated on this host")
    found = re.search(r'"fleet_id": "([0-9a-f]+)"', n.text(path))
    if not found:
        raise Unknown(f"{path} has no fleet id")
    return _same(n, FLEET_ID, found[0], path)


@check(
    "FLEET.CLOCK",
    "Clocks of nodes differ by less than 30 s: logs of a fault on several nodes cannot be read "
    "together else.",
    "warning",
    "issues, ours",
    fix="sudo timedatectl set-ntp true, on the node that differs",
    live=True,
)
def clock(n: Node) -> Verdict:
    here = number(n.run("date", "+%s"), "date +%s")
    began = time.monotonic()
    others = {name: number(value, f"the clock of {name}") for name, value in _ask(n, CLOCK).items()}
    took = time.monotonic() - began
    differ = {name: there - here for name, there in others.items() if not -30 <= there - here <= 30 + took}
    found = "; ".join(f"{name} by {seconds} s" for name, seconds in differ.items()) or "less than 30 s"
    return want(not differ, expected="less than 30 s", found=found, where="date")
