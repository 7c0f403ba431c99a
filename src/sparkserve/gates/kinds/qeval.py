"""qeval: 75 tasks of our own writing, and whether fewer of them are solved than by the baseline.

Alone it measures, and fails only when nothing is solved: what a model solves is the model's. Against a
baseline each task is its own control, so a loss shows long before a score would. `--quick` asks every third
task, without thinking and cut short: its score compares with quick runs only.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

from sparkserve.gates import asking, checkers, tasks
from sparkserve.gates.asking import Asker
from sparkserve.gates.contract import CannotRunError, Outcome
from sparkserve.stats import paired

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context
    from sparkserve.gates.evidence import Evidence
    from sparkserve.gates.tasks import Task

title = "Tasks in code, reasoning, math, JSON, format and prose: no fewer are solved than before."
needs = "chat completions; bubblewrap for the code"
cost_s = (300, 3000)

NET_LOSS = 3  # owners' rule: one or two flip between equal builds, three have not
QUICK_TOKENS = 320  # the longest reference answer of a quick run has 260
# Of the answers that two equal builds give, about one in a hundred flips each way.
NOISE = 0.01
POINTS = (2, 4, 8)


async def run(context: Context) -> Outcome:
    """Ask every task alone, and check."""
    asked = tasks.load()[:: 3 if context.quick else 1]
    # An answer may fill half of the context: what is longer would be refused, not cut.
    most = min(QUICK_TOKENS if context.quick else 1 << 30, await asking.context_tokens(context) // 2)
    asker = Asker(context, len(asked))
    rows = []
    for task in asked:
        thinking = task.thinking and not context.quick
        reply = await asker.chat(
            task.prompt,
            min(task.max_tokens, most),
            chat_template_kwargs={"thinking": thinking, "enable_thinking": thinking},
        )
        rows.append(await _row(task, reply))
    passed = {role: sum(row["passed"] for row in rows if row["role"] == role) for role in _ROLES}
    of = {role: sum(row["role"] == role for row in rows) for role in _ROLES}
    solves = passed["primary"] > 0
    return Outcome(
        passed=solves,
        summary=("measured, not judged: " if solves else "an engine that solves nothing is broken: ")
        + ", ".join(f"{passed[role]} of {of[role]} {role} tasks" for role in _ROLES),
        measured={
            "solved": sum(passed.values()),
            "tasks": len(rows),
            "primary_percent": round(100 * passed["primary"] / of["primary"], 1),
            **{f"{role}_solved": passed[role] for role in _ROLES},
            "tokens": sum(row["tokens"] for row in rows),
        },
        limits={},
        prompts=asker.prompts,
        details={"tasks": rows},
    )


_ROLES = ("primary", "secondary", "guard")


async def _row(task: Task, reply: Reply) -> dict[str, Any]:
    why = await checkers.check(task, reply.text) if reply.error is None else reply.error
    if why is not None and reply.finish == "length":
        why = f"cut off; {why}"
    return {
        "task": task.id,
        "role": task.role,
        "passed": why is None,
        "why": why,
        "tokens": reply.usage.completion_tokens if reply.usage else 0,
        "sha256": hashlib.sha256(reply.text.encode("utf-8", "surrogatepass")).hexdigest(),
        "text": reply.text,
    }


def compare(old: Evidence, new: Evidence) -> Outcome:
    """Each task against itself. Raises `CannotRunError` for evidence of other tasks, or asked otherwise."""
    before, after = _rows(old), _rows(new)
    if old.prompts != new.prompts or before.keys() != after.keys():
        raise CannotRunError("the baseline was asked other tasks: both --quick or neither, of one version")
    flips = {
        name: sum(before[task]["passed"] is was and after[task]["passed"] is now for task in after)
        for name, was, now in (
            ("kept", True, True), ("broke", True, False), ("fixed", False, True), ("unsolved", False, False),
        )
    }  # fmt: skip
    broke, fixed = flips["broke"], flips["fixed"]
    p = paired.mcnemar(broke, fixed)
    power = {
        f"power_{points}_percent": round(
            100 * paired.power(len(after), points / 100 + NOISE, NOISE, fails), 1
        )
        for points in (0, *POINTS)
    }
    findings = [
        f"{task} {'broke' if before[task]['passed'] else 'was fixed'}: {after[task]['why'] or 'solved now'}"
        for task in after
        if before[task]["passed"] is not after[task]["passed"]
    ]
    if fixed > broke and fails(broke, fixed):
        findings.append("more were fixed than chance explains: better or not, it is not the same model")
    chances = ", ".join(f"{power[f'power_{points}_percent']:.0f} % of {points}" for points in POINTS)
    return Outcome(
        passed=not fails(broke, fixed),
        summary=f"against the baseline {broke} broke and {fixed} were fixed (McNemar p = {p:.3f}); a true "
        f"loss in percent of the tasks is caught with a probability of {chances}",
        measured={**flips, "net_loss": broke - fixed, "mcnemar_p": p, **power},
        limits={"net_loss": NET_LOSS - 1, "mcnemar_p": paired.ALPHA},
        findings=tuple(findings),
    )


@cache
def fails(broke: int, fixed: int) -> bool:
    """The verdict over two runs: a net loss that is too large, or flips that chance does not explain."""
    return broke - fixed >= NET_LOSS or paired.mcnemar(broke, fixed) < paired.ALPHA


def _rows(evidence: Evidence) -> dict[str, dict[str, Any]]:
    try:
        return {row["task"]: row for row in evidence.details["tasks"]}
    except (KeyError, TypeError):
        raise CannotRunError("the baseline has no tasks in it") from None
