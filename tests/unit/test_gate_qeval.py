"""qeval against an engine that knows the answers, and some of them wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from gate_world import evidence, run
from sandbox_tools import sandboxed
from scripted import Script

from sparkserve.errors import SparkserveError
from sparkserve.gates import compare, tasks
from sparkserve.gates.contract import CannotRunError
from sparkserve.gates.kinds import qeval

if TYPE_CHECKING:
    from sparkserve.gates.contract import Outcome
    from sparkserve.gates.evidence import Evidence

__all__ = ["sandboxed"]

pytestmark = pytest.mark.usefixtures("sandboxed")
QUICK = tasks.load()[::3]
# Without the code, whose sandboxes are tried elsewhere, an answer is checked in no time.
CHEAP = [task for task in QUICK if task.kind != "code"]


def script(wrong: set[str]) -> Script:
    """An engine whose answers to the tasks in `wrong` are the near-misses."""
    table = {task.prompt: task.wrong if task.id in wrong else task.reference for task in tasks.load()}
    return Script(answers=table)


def judged(wrong: set[str]) -> Evidence:
    return evidence("qeval", run("qeval", script(wrong)))


def flipped(right: Evidence, wrong: set[str]) -> Evidence:
    """The evidence of a run that failed the tasks in `wrong`, without the run."""
    rows = [
        {**row, "passed": row["task"] not in wrong, "why": "wrong" if row["task"] in wrong else None}
        for row in right.details["tasks"]
    ]
    return right.model_copy(update={"details": {"tasks": rows}})


def drawn(count: int) -> set[str]:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    return {task.id for task in random.Random(seed).sample(CHEAP, count)}  # noqa: S311


@pytest.fixture(scope="module")
def right() -> Evidence:
    """The run of an engine that knows all."""
    with pytest.MonkeyPatch.context() as patch:
        from sandbox_tools import tools

        from sparkserve.gates import sandbox

        found = tools()
        patch.setattr(sandbox, "root", lambda: found)
        return judged(set())


def test_all_right_answers_are_seen_as_right(right: Evidence) -> None:
    assert right.measured["solved"] == right.measured["tasks"] == 25
    assert right.passed and "not judged" in right.summary
    rows = right.details["tasks"]
    assert all(row["why"] is None and row["tokens"] > 0 and len(row["sha256"]) == 64 for row in rows)
    assert len(right.prompts) == 25


def test_wrong_answers_are_counted_where_they_are(right: Evidence) -> None:
    wrong = drawn(6)
    found = judged(wrong)
    assert {row["task"] for row in found.details["tasks"] if not row["passed"]} == wrong
    assert found.measured["solved"] == 19
    assert found.passed  # alone it judges nothing
    outcome = qeval.compare(right, found)
    assert not outcome.passed and outcome.measured["broke"] == 6


@pytest.mark.parametrize(("broke", "passes"), [(0, True), (2, True), (3, False), (8, False)])
def test_a_loss_of_three_fails(right: Evidence, broke: int, passes: bool) -> None:
    wrong = drawn(broke)
    outcome = qeval.compare(right, flipped(right, wrong))
    assert outcome.passed is passes
    assert outcome.measured["net_loss"] == outcome.measured["broke"] == broke
    assert {finding.split()[0] for finding in outcome.findings} == wrong
    assert "2, " in outcome.summary and "probability" in outcome.summary


def test_flips_both_ways_are_no_loss(right: Evidence) -> None:
    four = sorted(drawn(4))
    one, other = four[:2], four[2:]
    outcome = qeval.compare(flipped(right, set(one)), flipped(right, set(other)))
    assert outcome.passed
    assert outcome.measured["net_loss"] == 0 and outcome.measured["broke"] == 2


def test_more_fixed_than_chance_explains_is_another_model(right: Evidence) -> None:
    outcome = qeval.compare(flipped(right, drawn(6)), right)
    assert not outcome.passed
    assert outcome.measured["net_loss"] == -6
    # 2 x 0.5^6: six flips, all one way.
    assert outcome.measured["mcnemar_p"] == pytest.approx(0.03125)
    assert "not the same model" in outcome.findings[-1]


def test_five_fixed_may_be_chance(right: Evidence) -> None:
    assert qeval.compare(flipped(right, drawn(5)), right).passed


def test_the_power_grows_with_the_loss_and_the_tasks(right: Evidence) -> None:
    measured = qeval.compare(right, right).measured
    power = [float(str(measured[f"power_{points}_percent"])) for points in (0, 2, 4, 8)]
    assert power == sorted(power) and power[0] < 1
    # A simulation of whole runs agrees: 20,000 draws have a standard error below 0.4 %.
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)  # noqa: S311
    caught = 0
    for _ in range(20_000):
        broke = fixed = 0
        for _ in range(25):
            die = draw.random()
            broke += die < 0.09
            fixed += 0.09 <= die < 0.10
        caught += qeval.fails(broke, fixed)
    # 5 standard errors: a false alarm in 2 million.
    assert abs(100 * caught / 20_000 - power[3]) < 1.8


def test_evidence_of_other_questions_is_refused(right: Evidence) -> None:
    whole = right.model_copy(update={"prompts": right.prompts[1:]})
    with pytest.raises(CannotRunError, match="other tasks"):
        qeval.compare(whole, right)
    with pytest.raises(CannotRunError, match="no tasks"):
        qeval.compare(right.model_copy(update={"details": None}), right)
    with pytest.raises(SparkserveError) as caught:
        compare.two(whole, right)
    assert caught.value.id == "GATE.EVIDENCE" and "other tasks" in caught.value.found


def test_an_engine_that_fails_solves_nothing() -> None:
    outcome: Outcome = run("qeval", Script(error_every=1))
    assert outcome.measured["solved"] == 0
    assert not outcome.passed
    assert all("HTTP 500" in row["why"] for row in outcome.details["tasks"])


def test_garbled_answers_are_no_answers(right: Evidence) -> None:
    given = script(set())
    found = run("qeval", Script(answers=given.answers, garble=(1, 8)))
    assert not qeval.compare(right, evidence("qeval", found)).passed


def test_an_answer_in_a_model_s_usual_dress_is_right(right: Evidence) -> None:
    def dressed(text: str) -> str:
        return f"<think>\nEasy.\n</think>\n\n{text}\n" if text.endswith(".") else f"{text}\n\n"

    table = {task.prompt: dressed(task.reference) for task in CHEAP}
    found = run("qeval", Script(answers=table))
    rows = {row["task"]: row for row in found.details["tasks"]}
    assert all(rows[task.id]["passed"] for task in CHEAP)
