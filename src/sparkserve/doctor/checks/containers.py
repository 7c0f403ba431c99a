"""Containers of another recipe: most owners had one before, and some come back at a reboot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, quoted, want
from sparkserve.doctor.guard import INSPECT

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

_ENGINE = re.compile(r"(?i)sglang|vllm|dsv4|deepseek|llama|trtllm|ollama")


def _containers(n: Node) -> list[tuple[str, str, bool]]:
    """(name, restart policy, runs) of every container of an engine."""
    if not n.exists("/var/run/docker.sock") and not n.exists("/run/docker.sock"):
        raise NotApplicable("docker does not run")
    found = []
    for each in n.run("docker", "ps", "-aq", "--no-trunc").split():
        words = n.run("docker", "inspect", "--format", INSPECT, each).split()
        if len(words) != 4 or not words[0].startswith("/") or words[2] not in ("true", "false"):
            raise Unknown("docker inspect printed another form")
        name, policy, runs, image = words
        if _ENGINE.search(name) or _ENGINE.search(image):
            found.append((name.lstrip("/"), policy, runs == "true"))
    return found


@check(
    "CONTAINER.RESTART",
    "No container of an engine starts by itself: after a power cut one rank comes back alone and "
    "takes the memory.",
    "error",
    "issues, mia",
    fix="docker update --restart=no NAME",
)
def restart(n: Node) -> Verdict:
    again = {name: policy for name, policy, _ in _containers(n) if policy not in ("no", "")}
    wrong = [f"{name} ({policy})" for name, policy in again.items()]
    fix = f"docker update --restart=no {quoted(*again)}"
    found = ", ".join(wrong) or "none"
    return want(not wrong, expected="restart policy no", found=found, where="docker inspect", fix=fix)


@check(
    "CONTAINER.RUNNING",
    "No container of another engine runs: an old head answers a new worker on the same port.",
    "error",
    "issues, mia",
    fix="docker stop NAME, on every node",
)
def running(n: Node) -> Verdict:
    wrong = [name for name, _, runs in _containers(n) if runs]
    fix = f"docker stop {quoted(*wrong)}, on every node that has them"
    return want(not wrong, expected="none", found=", ".join(wrong) or "none", where="docker ps", fix=fix)
