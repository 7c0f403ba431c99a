# ruff: noqa: RUF001 - Chinese has commas of its own
"""Each gate passes a good engine and fails a bad one.

Seeds are new in each run; a failure prints its seed.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import itertools
import random
import secrets
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import scripted
from jsonschema import Draft202012Validator

from sparkserve.client.client import Client
from sparkserve.client.reply import Reply
from sparkserve.gates import logprobs, registry, schemas
from sparkserve.gates.contract import CannotRunError, Context
from sparkserve.gates.kinds import lru, nan, needle, prefix, structured
from sparkserve.gates.logprobs import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.gates.contract import Outcome

MINE = ("determinism", "lru", "nan", "needle", "prefix", "smoke", "structured", "tscan")
CHINESE = "茶起源于中国，已有几千年的历史。人们最初把它当作药物，后来才当作饮料。"


@pytest.fixture
def seed() -> Iterator[int]:
    made = secrets.randbits(31)
    print("seed", made)
    yield made


def run(gate: str, seed: int, *, quick: bool = True, **fields: Any) -> Outcome:
    table = importlib.import_module(f"sweeps.{gate.replace('-', '_')}")
    script = scripted.Script(**{**table.CLEAN, "seed": seed, **fields})

    async def ask(endpoint: str) -> Outcome:
        async with Client(endpoint) as client:
            return await registry.load(gate).run(Context(client, script.model, quick, seed))

    changed = getattr(table, "PATCH", {})
    module = registry.load(gate)
    with patch.multiple(module, **changed) if changed else patch.dict({}), scripted.serve(script) as endpoint:
        return asyncio.run(ask(endpoint))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("gate", MINE)
def test_a_good_engine_passes(gate: str, quick: bool, seed: int) -> None:
    outcome = run(gate, seed, quick=quick)
    assert outcome.passed, outcome
    assert outcome.findings == ()
    assert outcome.prompts
    # What is bounded is measured, and within its bound.
    for name, most in outcome.limits.items():
        value = outcome.measured[name]
        assert isinstance(value, int | float)
        assert value <= most


@pytest.mark.parametrize(
    ("gate", "fault", "words"),
    [
        ("smoke", {"answers": {"capital": "It is Rome."}}, "Paris is not in 'It is Rome.'"),
        ("smoke", {"usage": False}, "no usage counts"),
        ("determinism", {"drift": 0.01, "drift_when": "repeat"}, "the same tokens, logprobs up to"),
        ("determinism", {"drift": 3.0, "drift_when": "repeat"}, "other tokens from"),
        ("determinism", {"nan": "null"}, "logprobs are no numbers"),
        ("prefix", {"drift": 0.6, "drift_when": "hit"}, "median_drift is"),
        ("prefix", {"wrong_hit": True}, "worst_drift is"),
        ("prefix", {"page": 1 << 20}, "no hit: 0 of"),
        ("tscan", {"garble": (30, 100)}, "letters of CJK"),
        ("tscan", {"loop": (30, 40)}, " times"),
        ("tscan", {"error_every": 1}, "HTTP 500"),
        ("tscan", {"answer": lambda prompt: "!" * 60}, "no words in '!!!!"),
        ("tscan", {"answer": lambda prompt: "a" * 60}, "no words in 'aaaa"),
        ("tscan", {"answer": lambda prompt: "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6 " * 2}, "letters of GREEK"),
        ("needle", {"forget": 0.01}, "depth 0.9: the"),
        ("structured", {"break_json": True}, "no JSON"),
        ("structured", {"drop": "event", "drop_every": 1}, "streamed"),
        ("nan", {"nan": "null"}, "logprobs are no numbers"),
        ("nan", {"nan": "bang"}, "logprobs are no numbers"),
        ("nan", {"error_every": 1}, "one space: HTTP 500"),
        ("lru", {"garble": (30, 100)}, "answer 1: no"),
    ],
)
def test_a_bad_engine_fails(gate: str, fault: dict[str, Any], words: str, seed: int) -> None:
    outcome = run(gate, seed, **fault)
    assert not outcome.passed
    assert any(words in finding for finding in outcome.findings), outcome.findings


@pytest.mark.parametrize("gate", ["determinism", "nan", "prefix", "tscan"])
@pytest.mark.parametrize("kind", ["base64", "chinese", "table"])
def test_odd_but_honest_answers_pass(gate: str, kind: str, seed: int) -> None:
    data = base64.b64encode(random.Random(seed).randbytes(3000)).decode()  # noqa: S311
    table = "| day | open |\n|---|---|\n" + "| Monday | yes |\n" * 20

    def answer(prompt: str) -> str | None:
        if kind == "chinese":
            return CHINESE if "\u4e00" <= max(prompt) <= "\u9fff" else None
        return data if kind == "base64" else table

    outcome = run(gate, seed, answer=answer)
    assert outcome.passed, outcome.findings


def test_what_an_endpoint_lacks_is_said(seed: int) -> None:
    with pytest.raises(CannotRunError, match="the usage does not say how many tokens were cached"):
        run("prefix", seed, usage=False)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("```python\nclass A:\n def get(self, key): ...\n def put(self, key, value): ...\n```", None),
        ("Yes.\n```py\nclass A:\n def get(self, key): ...\n def put(self, key, value): ...", None),
        ("class A: pass", "no block of Python: 'class A: pass'"),
        ("```python\nclass A(:\n```", "no Python: "),
        ("```python\nx = 1\n```", "no class"),
        ("```python\n" + "(" * 10_000 + "\n```", "no Python: "),
        ("```python\nclass A:\n def get(self, key): ...\n```", "A.put is not (self, key, value) but missing"),
        (
            "```python\nclass A:\n def get(self, key): ...\n def put(self, key, value, *a): ...\n```",
            "A.put is not (self, key, value) but self, key, value, a",
        ),
    ],
)
def test_code_is_read_and_not_run(answer: str, wrong: str | None) -> None:
    found = lru.verdict(answer)
    assert found == wrong or (found is not None and wrong is not None and found.startswith(wrong)), found


def test_schemas_are_schemas_and_all_different(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    drawn = [schemas.draw(dice)[1] for _ in range(40)]
    for schema in drawn:
        Draft202012Validator.check_schema(schema)
    # Of more than 10^8 possible ones, five of forty are equal less than once in 10^6 tests.
    assert len({repr(schema) for schema in drawn}) >= 36


@pytest.mark.parametrize(
    ("text", "finish", "wrong"),
    [
        ('{"a": 3}', "stop", None),
        ('{"a": 3}', "length", "it ended by length"),
        ('{"a": 3', "stop", "no JSON"),
        ('```json\n{"a": 3}\n```', "stop", "no JSON"),
        ('{"a": "3"}', "stop", "$.a: '3' is not of type 'integer'"),
        ('{"a": 3, "b": 4}', "stop", "$: Additional properties"),
    ],
)
def test_an_answer_fits_its_schema(text: str, finish: str, wrong: str | None) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    found = structured.wrong(Reply(200, None, 1.0, text=text, finish=finish), schema)
    assert found == wrong or (found is not None and wrong is not None and found.startswith(wrong)), found


def test_streamed_is_what_whole_is(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    monkeypatch.setattr(schemas, "draw", lambda dice: ("book", schema))
    numbers = itertools.count()
    outcome = run("structured", seed, answer=lambda prompt: f'{{"a": {next(numbers)}}}')
    assert outcome.findings[0] == "schema 1: streamed '{\"a\": 1}' is not the whole '{\"a\": 0}'"


@pytest.mark.parametrize("context", [2048, 8192, 131072, 1 << 20])
def test_needles_lie_at_their_depths_in_texts_that_fit(context: int, seed: int) -> None:
    ladder = needle.lengths(context, quick=False)
    assert ladder == sorted(ladder)
    assert context * 0.5 < ladder[-1] * needle.TOKENS_A_WORD <= context * 0.9
    text, planted = needle.plant(random.Random(seed), min(ladder[-1], 5000))  # noqa: S311
    places = [text.index(f"The {fact} is {phrase}.") / len(text) for fact, phrase in planted.items()]
    assert places == pytest.approx(needle.DEPTHS, abs=0.03)
    assert all(text.count(part) == 1 for each in planted.items() for part in each)


def test_a_run_of_one_token_is_no_number_either() -> None:
    content = [{"token": token, "logprob": -0.5} for token in ["Once", *["!"] * 8]]
    reply = Reply(200, None, 1.0, body={"choices": [{"logprobs": {"content": content}}]})
    assert nan.wrong(reply) == "'!' 8 times from token 2 on"


def tokens(*each: tuple[str, float]) -> tuple[Token, ...]:
    return tuple(Token(*one, top=(one, ("z", -9.0))) for one in each)


def test_drift_and_difference_by_hand() -> None:
    cold = tokens(("a", -1.0), ("b", -0.5), ("c", -2.0))
    moved = tokens(("a", -1.5), ("b", -0.5), ("c", -1.0))
    assert prefix.drift(cold, cold) == 0
    assert prefix.drift(cold, moved) == 0.5  # (0.5 + 0 + 1) / 3
    other = tokens(("a", -1.0), ("x", -0.1))
    assert prefix.drift(cold, other) == 4.25  # 0, then -0.5 against the -9 that bounds b there: 8.5 / 2
    assert logprobs.difference(cold, moved) == logprobs.Difference(None, 1.0)
    assert logprobs.difference(cold, other) == logprobs.Difference(1, 0.0)
    assert logprobs.difference(cold, cold[:2]) == logprobs.Difference(2, 0.0)
    lost = tokens(("a", float("nan")), ("b", -0.5), ("c", -2.0))
    assert logprobs.difference(lost, lost) == logprobs.Difference(None, 0.0)
    assert logprobs.difference(cold, lost) == logprobs.Difference(None, float("inf"))
