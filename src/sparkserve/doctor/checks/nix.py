"""Nix on this host, and the closure that it is set to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, want
from sparkserve.doctor.node import PLAN, RANK_UNIT

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

_SETTING = re.compile(r"\s*(#|!?include\s|[a-z0-9-]+\s*=)")
_CONF = "/etc/nix/nix.conf"
PROFILE = "/nix/var/nix/profiles/sparkserve"


@check(
    "NIX.INSTALLED",
    "Nix is installed where ssh and sudo look for it: a closure is copied with the node's own Nix.",
    "error",
    "ours, owen",
    fix="sudo ./sparkserve host prepare --apply",
)
def installed(n: Node) -> Verdict:
    places = ("/usr/bin/nix-store", "/usr/local/bin/nix-store")
    found = [path for path in places if n.exists(path)]
    return want(bool(found), expected=" or ".join(places), found=" ".join(found) or "neither", where="/usr")


@check(
    "NIX.STORE",
    "The folder of the Nix store is there.",
    "error",
    "ours",
    fix="sudo apt install --reinstall nix-bin nix-setup-systemd; look whether a mount hides /nix",
)
def store(n: Node) -> Verdict:
    found = n.exists("/nix/store")
    return want(found, expected="/nix/store", found="there" if found else "not there", where="/nix")


@check(
    "NIX.PROFILE",
    "The node's profile leads to a closure that is there: a collected one breaks the next start only.",
    "error",
    "issues, ours",
    fix="./sparkserve up (it copies and sets the closure again), or nix-env --rollback -p " + PROFILE,
)
def profile(n: Node) -> Verdict:
    if not n.exists("/nix/var/nix/profiles") or "sparkserve" not in n.names("/nix/var/nix/profiles"):
        raise NotApplicable("no closure was ever activated on this host")
    there = n.exists(PLAN)
    generation = n.link(PROFILE)
    found = generation if there else f"{generation}, which has no plan.json"
    return want(there, expected="a closure with a plan.json", found=found, where=PROFILE)


@check(
    "NIX.RUNNING",
    "The supervisor runs the closure that the profile is set to: else a reboot starts something else.",
    "warning",
    "issues",
    fix="./sparkserve down, then ./sparkserve up: a new closure counts from the next start of the group",
)
def running(n: Node) -> Verdict:
    n.engine()
    path = n.link(PROFILE)
    target = n.link(f"/nix/var/nix/profiles/{path}") if "/" not in path else path
    found = re.search(r"path=(/nix/store/[^/\s]+)", n.unit(RANK_UNIT, "ExecStart")["ExecStart"])
    if not found:
        raise Unknown(f"{RANK_UNIT} runs nothing from the store")
    return want(found[1] == target, expected=target, found=found[1], where=f"{RANK_UNIT}, {PROFILE}")


@check(
    "NIX.NODE",
    "The closure is this host's: another node's has other addresses and another rank.",
    "error",
    "ours, owen",
    fix="./sparkserve up, which brings every node its own; or correct the addresses in fleet.nodes",
)
def node(n: Node) -> Verdict:
    planned = str(n.plan("fabric", "management", "address"))
    nodes = {str(each["address"]): str(each["name"]) for each in n.plan("fleet", "nodes")}
    here = [address for _, address, _ in n.addresses() if address in nodes]
    others = [nodes[address] for address in here if address != planned]
    ours = str(n.plan("node", "name"))
    return want(not others, expected=ours, found=" ".join(others) or ours, where=f"{PLAN}, ip addr show")


@check(
    "NIX.TRUSTED",
    "Only root may give this host's Nix unsigned paths: who may, can replace what root runs.",
    "warning",
    "issues",
    fix="trusted-users = root in /etc/nix/nix.conf, without extra-trusted-users; then "
    "sudo systemctl restart nix-daemon",
)
def trusted(n: Node) -> Verdict:
    if not n.exists(_CONF) and not n.exists("/nix/store"):
        raise NotApplicable("this host has no Nix")
    lines = [
        line.partition("#")[0].strip() for line in (n.text(_CONF) if n.exists(_CONF) else "").splitlines()
    ]
    if odd := [line for line in lines if line and not _SETTING.match(line)]:
        raise Unknown(f"{_CONF} has lines that are no settings: {odd[0][:40]!r}")
    users = [
        word
        for line in lines
        if line.partition("=")[0].strip() in ("trusted-users", "extra-trusted-users")
        for word in line.partition("=")[2].split()
    ]
    wrong = sorted(set(users) - {"root"})
    others = [line for line in lines if re.match(r"!?include\s", line)]
    if others and not wrong:
        raise Unknown(f"{_CONF} takes settings of other files: {others[0][:80]}")
    return want(not wrong, expected="only root", found=" ".join(wrong) or "only root", where=_CONF)


@check(
    "NIX.PLAN",
    "The plan on this host has the version that this doctor knows: else some checks do not see what "
    "they ask.",
    "info",
    "ours",
    fix="run the doctor of the closure: /nix/var/nix/profiles/sparkserve/bin/sparkserve doctor",
)
def plan(n: Node) -> Verdict:
    found = json.dumps(n.plan("schema"))[:60]
    return want(found == '"sparkserve.plan/1"', expected="sparkserve.plan/1", found=found, where=PLAN)
