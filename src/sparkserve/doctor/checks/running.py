"""The engine that runs: its processes, what it holds, and what it says in its log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Unknown, Verdict, check, want
from sparkserve.doctor.redact import HIDDEN

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node


@check(
    "ENGINE.RUST",
    "No cargo runs in our unit: SGLang may build a part of itself at its start, and offline that hangs.",
    "error",
    "issues, mia, knapcio",
    fix=f'engine.env.SGLANG_RUST_BUILD_MODE = "never" in fleet.nix, {RESTARTED}',
)
def rust(n: Node) -> Verdict:
    n.engine()
    found = [f"{name} ({pid})" for pid, name in n.processes() if name in ("cargo", "rustc") and n.ours(pid)]
    return want(not found, expected="none", found=" ".join(found) or "none", where="/proc/*/comm")


@check(
    "ENGINE.PORT_TAKEN",
    "Nobody else listens on the group's ports while our engine is off: a rank joins the old one and hangs.",
    "error",
    "issues",
    fix="sudo ss -ltnp shows who it is; end it the way it was started",
)
def port_taken(n: Node) -> Verdict:
    group = n.plan("group")
    n.idle()
    first, last = group["rendezvous_ports"]
    taken = {port for _, port in n.listening()}
    found = sorted(port for port in taken if port == group["engine_port"] or first <= port <= last)
    shown = " ".join(map(str, found)) or "none"
    return want(not found, expected="none", found=shown, where="ss -ltn")


@check(
    "ENGINE.ORPHAN",
    "No inference engine runs outside of our unit: it holds memory and ports that the next start needs.",
    "error",
    "issues",
    fix="sudo kill PID, and wait until MemAvailable is back; a container: docker stop",
)
def orphan(n: Node) -> Verdict:
    foreign = [f"{pid}: {line[:80]}" for pid, line in n.engines().items() if not n.ours(pid)]
    pids = " ".join(each.partition(":")[0] for each in foreign)
    fix = f"sudo kill {pids}, and wait until MemAvailable is back; if they are in a container: docker stop"
    found = "; ".join(foreign) or "none"
    return want(not foreign, expected="none", found=found, where="/proc/*/cmdline", fix=fix)


@check(
    "ENGINE.ARGUMENTS",
    "The running engine was started with every argument of the plan: one started by hand serves "
    "something else.",
    "error",
    "owen, mia",
    fix="./sparkserve down, then ./sparkserve up",
)
def arguments(n: Node) -> Verdict:
    planned = [str(word) for word in n.plan("engine", "args")]
    n.engine()
    lines = [set(n.command(pid)) for pid in n.engines() if n.ours(pid)]
    if not lines:
        raise Unknown("no process of our unit shows the engine's command line")
    missing = min(([word for word in planned if word not in line] for line in lines), key=len)
    if [word for word in missing if word not in n.facts.planned] and any(HIDDEN in line for line in lines):
        raise Unknown("this bundle was made with another plan, and only words of that stay in a command line")
    found = f"without {' '.join(missing)}" if missing else "all of them"
    return want(not missing, expected="the plan's engine.args", found=found, where="/proc/*/cmdline")


def _nccl(n: Node) -> set[str]:
    n.engine()
    found: set[str] = set()
    hidden: Unknown | None = None
    for pid in [pid for pid in n.engines() if n.ours(pid)]:
        try:
            found |= set(re.findall(r"\s(/\S*libnccl\.so\S*)$", n.text(f"/proc/{pid}/maps"), re.M))
        except Unknown as error:  # it has ended, or is another user's
            hidden = error
    if hidden is not None and not found:
        raise hidden
    if not found:
        raise NotApplicable("no process of the engine has mapped NCCL")
    return found


@check(
    "ENGINE.NCCL_TWO",
    "The engine's processes have mapped one NCCL: a second one is without effect, or DeepEP stops.",
    "error",
    "issues, knapcio, mia",
    fix="take LD_LIBRARY_PATH and LD_PRELOAD out of engine.env in fleet.nix: torch has its own path to NCCL",
)
def nccl_two(n: Node) -> Verdict:
    found = sorted(_nccl(n))
    return want(len(found) == 1, expected="one", found=" ".join(found), where="/proc/*/maps")


@check(
    "ENGINE.NCCL_VERSION",
    "The engine says NCCL 2.29.3 or later in its log: earlier ones lose work on aarch64 and hang after days.",
    "error",
    "issues, owen",
    fix=f"pin nvidia-nccl 2.29.3 or later (nix/profiles), ./sparkserve pins lock, {RESTARTED}",
    on="spark",
)
def nccl_version(n: Node) -> Verdict:
    n.engine()
    found = re.findall(r"NCCL version (\d+)\.(\d+)\.(\d+)", n.log())
    if not found:
        raise Unknown("the engine's log does not name its NCCL: set NCCL_DEBUG=VERSION")
    last = tuple(map(int, found[-1]))
    return want(last >= (2, 29, 3), expected="2.29.3", found=".".join(found[-1]), where="rank.log")


@check(
    "ENGINE.SOCKETS",
    "NCCL uses RDMA: when it finds no device it takes sockets, at a tenth of the speed, and says so "
    "in the log only.",
    "error",
    "issues",
    fix="RDMA.DEVICES and RDMA.NODES first; then ./sparkserve down and ./sparkserve up",
    on="spark",
)
def sockets(n: Node) -> Verdict:
    n.engine()
    n.links()
    lines = [
        line for line in n.log().splitlines() if "NET/Socket" in line or "NET/IB : No device found" in line
    ]
    if not lines and "NET/IB" not in n.log():
        raise Unknown("the engine's log does not name NCCL's network: set NCCL_DEBUG=INFO")
    found = lines[-1][-120:] if lines else "NET/IB"
    return want(not lines, expected="NET/IB", found=found, where="rank.log")


@check(
    "ENGINE.KV_CLAMPED",
    "The KV pool has the size that was asked for: memory decides at each boot, and a smaller one is silent.",
    "warning",
    "issues, mia",
    fix="a smaller engine.kvTokens in fleet.nix; or free the page cache before a start (MEMORY.CACHE)",
)
def kv_clamped(n: Node) -> Verdict:
    asked = n.argument("--max-total-tokens")
    if not asked or not asked.isdigit():
        raise NotApplicable("the plan asks for no size")
    n.engine()
    seen = re.findall(r"(?:full_token|max_total_num_tokens)=(\d+)", n.log())
    if not seen:
        raise Unknown("the engine's log names no pool size")
    # Pools are whole pages of 256 tokens.
    good = int(seen[-1]) >= int(asked) - 256
    return want(good, expected=f"{asked} tokens", found=f"{seen[-1]} tokens", where="rank.log")
