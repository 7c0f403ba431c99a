"""What systemd runs: what of the desktop, what of ours, and sshd, which must answer when all else fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, quoted, want
from sparkserve.doctor.node import RANK_UNIT

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

IDLE = (
    "bluetooth.service",
    "cups.service",
    "cups-browsed.service",
    "snapd.service",
    "fwupd-refresh.timer",
    "dgx-dashboard.service",
    "dgx-dashboard-admin.service",
)
_GONE = ("masked", "not-found")
# The first LoginGraceTime that sshd reads wins, and the last MaxStartups: cloud-init has a file with 50.
SSHD = "/etc/ssh/sshd_config.d"


def _state(n: Node, name: str) -> tuple[str, str, str]:
    values = n.unit(name, "LoadState", "ActiveState", "UnitFileState")
    return values["LoadState"], values["ActiveState"], values["UnitFileState"]


@check(
    "SERVICE.DISPLAY",
    "No display manager runs: a desktop takes GPU memory, and a 16 GB NCCL test froze such a node.",
    "error",
    "owen, issues",
    fix="sudo systemctl disable --now display-manager.service",
    on="spark",
)
def display(n: Node) -> Verdict:
    _, active, _ = _state(n, "display-manager.service")
    good = active not in ("active", "activating", "reloading")
    return want(good, expected="inactive", found=active, where="display-manager.service")


@check(
    "SERVICE.IDLE",
    "Services that a server has no use for are off: their memory is the model's, and they run when "
    "they like.",
    "warning",
    "owen",
    fix="sudo systemctl disable --now UNITS",
    on="spark",
)
def idle(n: Node) -> Verdict:
    try:
        planned = n.plan("host", "mask")
    except NotApplicable:
        planned = []
    on = []
    for name in IDLE:
        if name in planned:  # SERVICE.MASKED asks more of it
            continue
        load, active, enabled = _state(n, name)
        if load == "loaded" and (active == "active" or enabled in ("enabled", "alias")):
            on.append(name)
    found = " ".join(on) or "all off"
    return want(
        not on,
        expected="off",
        found=found,
        where="systemd",
        fix=f"sudo systemctl disable --now {quoted(*on)}",
    )


@check(
    "SERVICE.MASKED",
    "Every unit that the plan masks is masked: an update of the system enables them again.",
    "error",
    "ours, owen",
    fix="sudo systemctl mask --now UNITS",
)
def masked(n: Node) -> Verdict:
    wrong = [str(name) for name in n.plan("host", "mask") if _state(n, str(name))[0] not in _GONE]
    found = " ".join(wrong) or "all masked"
    return want(
        not wrong,
        expected="masked",
        found=found,
        where="systemd",
        fix=f"sudo systemctl mask --now {quoted(*wrong)}",
    )


@check(
    "SERVICE.UNITS",
    "Every unit of the plan is loaded, and none of them failed.",
    "error",
    "ours, issues",
    fix="journalctl -b -u UNIT; then ./sparkserve up, or bin/activate of the closure",
)
def units(n: Node) -> Verdict:
    wrong = {}
    for name in n.plan("host", "units"):
        if not re.fullmatch(r"[A-Za-z0-9_.:-]+[.](service|timer|mount|socket|path)", name):
            continue
        load, active, _ = _state(n, name)
        if load != "loaded" or active == "failed":
            wrong[name] = load if load != "loaded" else active
    found = "; ".join(f"{name} is {state}" for name, state in wrong.items()) or "all good"
    fix = "; ".join(f"journalctl -b -u {quoted(name)}" for name in wrong)
    fix += "; then sudo /nix/var/nix/profiles/sparkserve/bin/activate"
    return want(not wrong, expected="loaded, not failed", found=found, where="systemd", fix=fix)


@check(
    "SERVICE.TIMERS",
    "Every timer of the plan runs: clocks that a driver's recovery took back come again by one.",
    "warning",
    "issues, owen",
    fix="sudo /nix/var/nix/profiles/sparkserve/bin/activate",
)
def timers(n: Node) -> Verdict:
    names = [str(name) for name in n.plan("host", "units") if str(name).endswith(".timer")]
    if not names:
        raise NotApplicable("the plan has no timers")
    off = [name for name in names if _state(n, name)[1] not in ("active", "failed")]
    fix = f"sudo systemctl start {quoted(*off)}"
    return want(not off, expected="active", found=" ".join(off) or "all active", where="systemd", fix=fix)


@check(
    "SERVICE.RESTART",
    "systemd does not restart a rank that died: one rank alone waits for ever, and looks started.",
    "error",
    "issues, mia",
    fix=f"sudo systemctl cat {RANK_UNIT}; remove the drop-in with Restart=, sudo systemctl daemon-reload",
)
def restart(n: Node) -> Verdict:
    if RANK_UNIT not in n.plan("host", "units"):
        raise NotApplicable(f"the plan has no {RANK_UNIT}")
    found = n.unit(RANK_UNIT, "Restart")["Restart"]
    good = found in ("no", "on-watchdog")  # a supervisor that hangs is another matter
    return want(good, expected="no or on-watchdog", found=found, where=RANK_UNIT)


@check(
    "SERVICE.MEMLOCK",
    "The rank's unit may lock all memory: with the default of 8 MiB RDMA registration fails on the "
    "other rank.",
    "error",
    "issues",
    fix=f"sudo systemctl edit {RANK_UNIT}, and write: [Service] LimitMEMLOCK=infinity",
    on="spark",
)
def memlock(n: Node) -> Verdict:
    if RANK_UNIT not in n.plan("host", "units"):
        raise NotApplicable(f"the plan has no {RANK_UNIT}")
    found = n.unit(RANK_UNIT, "LimitMEMLOCK")["LimitMEMLOCK"]
    return want(found == "infinity", expected="infinity", found=found, where=RANK_UNIT)


@check(
    "SERVICE.WATCHDOG",
    "systemd feeds the hardware watchdog: a node that hangs is reset by it and not by hand.",
    "warning",
    "owen, issues",
    fix="RuntimeWatchdogSec=30s and RebootWatchdogSec=10min in "
    "/etc/systemd/system.conf.d/95-watchdog.conf, then "
    "sudo systemctl daemon-reexec",
    on="spark",
)
def watchdog(n: Node) -> Verdict:
    found = n.unit("", "RuntimeWatchdogUSec")["RuntimeWatchdogUSec"]
    good = found not in ("0", "infinity", "")
    return want(good, expected="30 s", found=found, where="systemctl show RuntimeWatchdogUSec")


@check(
    "SERVICE.SSHD_LIMITS",
    "sshd takes 64 logins at a time and drops silent ones after 30 s: at the default of 10 one "
    "incident locked all out.",
    "warning",
    "owen",
    fix=f"printf '%s\\n' 'LoginGraceTime 30' 'MaxStartups 64:30:128' | "
    f"sudo tee {SSHD}/00-limits.conf {SSHD}/zy-limits.conf && sudo sshd -t && sudo systemctl reload ssh",
    on="spark",
)
def sshd_limits(n: Node) -> Verdict:
    out = n.run("sshd", "-T")
    grace = re.search(r"^logingracetime (\d+)", out, re.M)
    startups = re.search(r"^maxstartups (\d+):\d+:\d+", out, re.M)
    if not grace or not startups:
        raise Unknown("sshd -T printed no logingracetime and maxstartups")
    found = f"LoginGraceTime {grace[1]}, MaxStartups {startups[1]}"
    good = 0 < int(grace[1]) <= 30 and int(startups[1]) >= 64
    return want(good, expected="LoginGraceTime 30, MaxStartups 64", found=found, where="sshd -T")


@check(
    "SERVICE.SSHD_MEMORY",
    "sshd has memory of its own and is the last to be killed: it must answer when the pool is full.",
    "warning",
    "owen, issues",
    fix="sudo systemctl edit ssh.service, and write: [Service] MemoryMin=128M and OOMScoreAdjust=-900",
    on="spark",
)
def sshd_memory(n: Node) -> Verdict:
    values = n.unit("ssh.service", "MemoryMin", "OOMScoreAdjust")
    low, score = values["MemoryMin"], values["OOMScoreAdjust"]
    if not re.fullmatch(r"\d+|infinity", low) or not re.fullmatch(r"-?\d+", score):
        raise Unknown(f"systemd printed MemoryMin={low[:20]} OOMScoreAdjust={score[:20]}")
    good = (low == "infinity" or int(low) >= 64 << 20) and int(score) <= -900
    found = f"MemoryMin {low}, OOMScoreAdjust {score}"
    return want(good, expected="134217728 and -900", found=found, where="ssh.service")
