"""The memory guard: does it run, can it act, and how near was it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, want
from sparkserve.doctor.checks.memory import gib
from sparkserve.doctor.node import GIB

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

STATE = "/run/sparkserve/guard.json"


def _state(n: Node) -> dict[str, Any]:
    if not n.exists(STATE):
        raise NotApplicable("no guard has run since boot")
    try:
        value = json.loads(n.text(STATE))
    except ValueError:
        raise Unknown(f"{STATE} is no JSON") from None
    if not isinstance(value, dict) or value.get("schema") != "sparkserve.guard/1":
        raise Unknown(f"{STATE} is not what this doctor knows")
    return value


@check(
    "MEMORY.GUARD",
    "The memory guard runs while an engine runs: without it a full pool freezes the host.",
    "error",
    "owen",
    fix="./sparkserve down, then ./sparkserve up: a group starts with its guards",
)
def guard(n: Node) -> Verdict:
    names = [name for name in n.plan("host", "units") if "guard" in name]
    if not names:
        raise NotApplicable("the plan has no guard")
    n.engine()
    state = n.unit(names[0], "ActiveState")["ActiveState"]
    return want(state == "active", expected="active", found=state, where=names[0])


@check(
    "MEMORY.GUARD_REACH",
    "The guard sees the cgroup of the engine that runs: else it could kill nothing.",
    "error",
    "owen",
    fix="./sparkserve down, then ./sparkserve up; if it stays: journalctl -b -u sparkserve-guard",
)
def reach(n: Node) -> Verdict:
    n.engine()
    found = _state(n)["reach"]
    shown = "seen" if found is True else "not seen"
    return want(found is True, expected="the engine's cgroup", found=shown, where=STATE)


@check(
    "MEMORY.GUARD_LACKS",
    "The guard got all it asked the kernel for: locked memory, priority, protection from the OOM killer.",
    "warning",
    "owen",
    fix="journalctl -b -u sparkserve-guard; sudo systemctl cat sparkserve-guard shows what took the "
    "right away",
)
def lacks(n: Node) -> Verdict:
    found = " ".join(map(str, _state(n)["lacks"]))
    return want(not found, expected="nothing lacks", found=found or "nothing lacks", where=STATE)


@check(
    "MEMORY.GUARD_KILLED",
    "The guard has not had to kill an engine since boot.",
    "warning",
    "owen, issues",
    fix="./sparkserve memory explain; then less KV, a smaller prefill chunk or a shorter context in "
    "fleet.nix",
)
def killed(n: Node) -> Verdict:
    state = _state(n)
    count, last = int(state["kills"]), state["kill"] or {}
    have = last.get("available_kib")
    found = (
        f"{count} times, at {gib(have) if isinstance(have, int) else 'unreadable memory'}"
        if count
        else "never"
    )
    return want(count == 0, expected="never", found=found, where=STATE)


@check(
    "MEMORY.LOW_WATER",
    "The lowest memory with this engine was 1 GiB or more above the guard's floor.",
    "warning",
    "owen, issues",
    fix="./sparkserve memory explain; then a smaller prefill chunk or less KV in fleet.nix, before "
    "it is killed",
)
def low_water(n: Node) -> Verdict:
    n.engine()
    found = _state(n)["low_water_engine_kib"]
    if not isinstance(found, int):
        raise Unknown(f"{STATE} has no low-water mark yet")
    least = n.floor() + GIB
    return want(found >= least, expected=f"at least {gib(least)}", found=gib(found), where=STATE)
