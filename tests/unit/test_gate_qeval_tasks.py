"""Every task of qeval: its reference passes, its near-miss does not, and its value has another proof."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import random
from collections import Counter
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any

import pytest
from sandbox_tools import sandboxed

from sparkserve.gates import answers, checkers, tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkserve.gates.tasks import Task

__all__ = ["sandboxed"]

TASKS = tasks.load()


def only(found: Iterable[Any]) -> Any:
    """What all solutions of a puzzle agree on."""
    [one] = set(found)
    return one


def check(task: Task, text: str, seed: int = 0) -> str | None:
    return asyncio.run(checkers.check(task, text, seed))


def test_the_numbers_that_the_docs_say() -> None:
    assert len(TASKS) == len({task.id for task in TASKS}) == len({task.prompt for task in TASKS}) == 75
    assert Counter(task.role for task in TASKS) == {"primary": 55, "secondary": 14, "guard": 6}
    third = Counter(task.category for task in TASKS[::3])
    assert sum(third.values()) == 25 and min(third.values()) >= 2


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_reference_passes_and_the_near_miss_does_not(task: Task) -> None:
    seed = random.SystemRandom().randrange(1 << 30) if task.kind == "code" else 0
    print(f"seed {seed}")
    assert check(task, task.reference, seed) is None
    if task.kind != "code":  # each costs three sandboxes
        assert check(task, f"Let me see.</think>\n\n{task.reference.strip()}\n") is None
    assert check(task, task.wrong) is not None
    assert check(task, "") == "an empty answer"
    assert check(task, "I do not know.") is not None


@pytest.mark.parametrize("task", [task for task in TASKS if task.proof], ids=lambda task: task.id)
def test_the_value_comes_out_of_its_proof(task: Task) -> None:
    names = {
        "Fraction": Fraction, "math": math, "datetime": datetime, "reduce": reduce, "only": only,
        "combinations": combinations, "permutations": permutations, "product": product,
    }  # fmt: skip
    found = eval(task.proof, names)  # noqa: S307 - ours
    if task.kind == "number":
        assert Fraction(found) == Fraction(task.value)
    else:
        assert str(found) == task.value


def test_every_task_with_one_right_value_has_a_proof() -> None:
    without = {task.id for task in TASKS if task.role == "primary" and task.kind != "code" and not task.proof}
    assert without == {"reasoning/tess-and-ivo", "reasoning/lamps"}  # words about words


@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        ("117.50", (), "235/2"),
        ("$117.50", (), "235/2"),
        ("117,50", (), "235/2"),
        ("1,852.20", (), "9261/5"),
        ("1 234 567", (), "1234567"),
        ("1\u202f234", (), "1234"),
        ("\u22123", (), "-3"),
        ("$\\frac{29}{72}$", (), "29/72"),
        ("\\boxed{3/11}", (), "3/11"),
        ("$\\boxed{\\dfrac{3}{11}}$", (), "3/11"),
        ("5 1/7", (), "36/7"),
        ("-2 1/2", (), "-5/2"),
        ("72 km/h", ("km/h",), "72"),
        ("72\\,\\text{km/h}", ("km/h",), "72"),
        ("12.2\\%", ("%",), "61/5"),
        ("x = 100/3", (), "100/3"),
        ("3 \u00d7 10^4", (), "30000"),
        ("3 \\times 10^{4}", (), "30000"),
        ("1.5e3", (), "1500"),
        ("49.", (), "49"),
        ("72 m/s", ("km/h",), None),
        ("about 7", (), None),
        ("7 or 8", (), None),
        ("4/0", (), None),
        ("1,23,4", (), None),
        ("", (), None),
    ],
)
def test_numbers_in_any_form(text: str, units: tuple[str, ...], value: str | None) -> None:
    assert answers.number(text, units) == (None if value is None else Fraction(value))


def test_any_number_is_read_back_in_every_form_that_we_know() -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)  # noqa: S311
    for _ in range(500):
        whole, down = draw.randrange(-(10**7), 10**7), draw.randrange(1, 99)
        assert answers.number(f"{whole:,}") == whole
        assert answers.number(f"{whole / 100:,.2f}") == Fraction(whole, 100)
        assert answers.number(f"{whole}/{down}") == Fraction(whole, down)
        assert answers.number(f"$\\frac{{{whole}}}{{{down}}}$") == Fraction(whole, down)
        assert answers.number(f"{whole} apples", ("apples",)) == whole
        assert answers.number(f"{whole} apples") is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("**Answer:** 7", "7"),
        ("**Final answer: 7**", "7"),
        ("Answer: 6\nNo, wait.\nAnswer: 7", "7"),
        ("> Answer: `7`", "7"),
        ("The answer: 7", None),
        ("7", None),
    ],
)
def test_the_line_that_answers(text: str, line: str | None) -> None:
    assert answers.last_line(text) == line


def test_values_are_equal_only_with_their_types() -> None:
    assert checkers.same({"a": [1, None, True, "x", 0.5]}, {"a": [1, None, True, "x", 0.5]})
    for one, other in ((1, True), (1, 1.0), ([1], [1, 1]), ({"a": 1}, {"a": 1, "b": 2}), ("1", 1), (0, None)):
        assert not checkers.same(one, other), (one, other)


def test_a_key_that_comes_twice_is_no_json_answer() -> None:
    [task] = [task for task in TASKS if task.id == "json/what-is-unknown"]
    text = json.loads(task.value)
    assert check(task, json.dumps(text)) is None
    assert "twice" in str(check(task, json.dumps(text)[:-1] + ', "faults": []}'))


def test_code_is_the_last_block_that_defines_the_function() -> None:
    text = "First:\n```python\ndef f():\n    return 1\n```\nBetter:\n```py\ndef f():\n    return 2\n```\n"
    text += "```\nf()\n```"
    assert checkers.code_of(text, "f") == "def f():\n    return 2"
    assert checkers.code_of("def f(): return 3", "f") == "def f(): return 3"
    assert checkers.code_of("```\ndef g(): pass\n```", "f") is None
