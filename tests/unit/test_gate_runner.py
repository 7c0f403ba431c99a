"""The runner: a gate without a verdict has failed, and says why in its evidence."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from gate_values import SUBJECT, FakeClient, evidence

from sparkserve.gates import files, registry, runner
from sparkserve.gates.asking import Asker
from sparkserve.gates.contract import CannotRunError, Context, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.gates.evidence import Evidence

GOOD = Outcome(True, "well", {"wrong": 0}, {"wrong": 1}, prompts=("a" * 64,))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    made = FakeClient()
    monkeypatch.setattr(runner, "Client", lambda endpoint, key_file: made)
    return made


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Gates by name: what is called with the context, or a module."""
    made: dict[str, Any] = {}

    def load(name: str) -> Any:
        async def run(context: Context) -> Outcome:
            outcome: Outcome = made[name](context)
            return await outcome if asyncio.iscoroutine(outcome) else outcome

        return SimpleNamespace(run=run) if callable(made[name]) else made[name]

    monkeypatch.setattr(registry, "names", lambda: sorted(made))
    monkeypatch.setattr(registry, "load", load)
    return made


def run(folder: Path, *names: str, **order: Any) -> list[Evidence]:
    given = runner.Order(SUBJECT, True, 7, **order)
    found = asyncio.run(runner.run(names, given, folder))
    # What is on disk is what was returned.
    assert [files.read(path) for _, path in found] == [each for each, _ in found]
    return [each for each, _ in found]


def failing(error: Exception) -> Callable[[Context], Outcome]:
    def gate(context: Context) -> Outcome:
        raise error

    return gate


def test_runs_all_in_order_and_writes_what_they_say(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    asked: list[Context] = []

    def well(context: Context) -> Outcome:
        asked.append(context)
        return GOOD

    gates["b"] = well
    gates["a"] = lambda context: Outcome(False, "ill", {}, {}, findings=("here", "there"))
    client.metrics = ["# TYPE n counter\nn_total 3\n", "# TYPE n counter\nn_total 5\n", "", ""]
    b, a = run(tmp_path / "new", "b", "a")
    assert (b.gate, b.passed, b.ran, b.summary, b.measured, b.limits) == (
        "b", True, True, "well", {"wrong": 0}, {"wrong": 1},
    )  # fmt: skip
    assert (b.prompts, b.counters, b.subject) == (("a" * 64,), {"n_total": 2.0}, SUBJECT)
    assert (a.passed, a.ran, a.findings) == (False, True, ("here", "there"))
    assert [(each.quick, each.seed, each.model) for each in asked] == [(True, 7, "m")]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CannotRunError("no logprobs"), "no logprobs"),
        (KeyError("choices"), "KeyError: 'choices'"),
        (ConnectionResetError("gone"), "ConnectionResetError: gone"),
        (TimeoutError(), "no verdict within 600 s"),
    ],
)
def test_what_keeps_a_gate_from_a_verdict_fails_it_and_not_the_next(
    error: Exception, words: str, client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    gates |= {"a": failing(error), "b": lambda context: GOOD}
    a, b = run(tmp_path, "a", "b")
    assert (a.passed, a.ran, a.summary) == (False, False, words)
    assert b.passed


def test_a_gate_that_never_ends_is_ended(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "QUICK_S", 0.05)
    gates["a"] = lambda context: asyncio.Event().wait()
    (a,) = run(tmp_path, "a")
    assert (a.passed, a.ran) == (False, False)


def test_a_declared_gate_that_is_not_there_has_failed(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    (a,) = run(tmp_path, "mind-reading")
    assert (a.passed, a.ran) == (False, False)
    assert a.summary == "the plan names it, and this version of sparkserve has no gate mind-reading"


def test_an_endpoint_that_died_of_a_gate_fails_it_and_all_that_follow(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    def kill(context: Context) -> Outcome:
        client.health = None
        return GOOD

    gates |= {"a": kill, "b": lambda context: GOOD}
    for each in run(tmp_path, "a", "b"):
        assert (each.passed, each.ran) == (False, False)
        assert each.summary == "nobody answers at http://127.0.0.1:1: refused"


def test_a_sick_endpoint_and_one_that_started_again_have_no_verdict(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    gates["a"] = lambda context: GOOD
    client.metrics = ["# TYPE n counter\nn_total 3\n", "# TYPE n counter\nn_total 1\n"]
    (a,) = run(tmp_path, "a")
    assert (a.passed, a.ran) == (False, False)
    assert "started again" in a.summary
    client.health = 503
    (a,) = run(tmp_path, "a")
    assert (a.passed, a.ran, a.summary) == (False, False, "http://127.0.0.1:1/health says 503: sick")


def test_an_answer_of_nobody_is_no_answer(client: FakeClient, gates: dict[str, Any], tmp_path: Path) -> None:
    async def gate(context: Context) -> Outcome:
        await Asker(context, 1).chat("Hello", 4)
        return GOOD

    async def ask(path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Any:
        return SimpleNamespace(status=0, error="the connection was reset")

    gates["a"] = gate
    client.ask = ask  # type: ignore[method-assign]
    (a,) = run(tmp_path, "a")
    assert (a.ran, a.summary) == (False, "request 1 got no answer: the connection was reset")


def test_compares_with_the_baseline_where_the_gate_can(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    def compare(old: Evidence, new: Evidence) -> Outcome:
        return Outcome(old.seed == 3, f"{old.seed} to {new.seed}", {"net": 2}, {"net": 3}, ("worse",))

    async def gate(context: Context) -> Outcome:
        assert context.against is not None
        return GOOD

    gates["a"] = SimpleNamespace(run=gate, compare=compare)
    for seed in (3, 4):
        old = evidence(gate="a", seed=seed)
        (a,) = run(tmp_path, "a", against={"a": old})
        assert (a.passed, a.summary) == (seed == 3, f"well; {seed} to 7")
        assert (a.measured, a.limits) == ({"wrong": 0, "net": 2}, {"wrong": 1, "net": 3})
        assert (a.findings, a.against) == (("worse",), files.digest(old))


def test_a_value_that_is_no_json_is_an_error_of_the_gate(
    client: FakeClient, gates: dict[str, Any], tmp_path: Path
) -> None:
    measured: Any = {"wrong": object()}
    gates["a"] = lambda context: Outcome(True, "well", measured, {})
    (a,) = run(tmp_path, "a")
    assert (a.passed, a.ran) == (False, False)
    assert json.loads(next(tmp_path.glob("a-*.json")).read_text())["passed"] is False
