"""batch-invariance: an engine that promises it, and the smallest drift that company brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gate_world import run
from scripted import Script

from sparkserve.gates.asking import Asker

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply

WAYS = ("repeated", "cached", "together", "staggered", "prefill")


def measured(**faults: Any) -> dict[str, Any]:
    # Steps of a millisecond: those who come staggered must meet.
    outcome = run("batch-invariance", Script(**{"context": 8192, "step_ms": 1.0, **faults}))
    found = dict(outcome.measured)
    assert outcome.passed is not any(found[way] for way in WAYS)
    assert set(outcome.limits.values()) == {0} and set(outcome.limits) == set(found)
    return found


def test_an_invariant_engine_passes() -> None:
    assert measured() == {**dict.fromkeys(WAYS, 0), "logprob_gap": 0.0}


@pytest.mark.parametrize(
    ("when", "seen"),
    [
        ("batched", {"together", "staggered", "prefill"}),
        ("hit", {"cached"}),
        ("repeat", set(WAYS)),
    ],
)
def test_a_drift_is_seen_where_it_is(when: Any, seen: set[str]) -> None:
    found = measured(drift=1e-6, drift_when=when)
    assert {way for way in WAYS if found[way]} == seen
    assert 0 < found["logprob_gap"] < 1e-4


def test_a_drift_that_changes_tokens_is_seen() -> None:
    outcome = run("batch-invariance", Script(context=8192, step_ms=1.0, drift=1.5, drift_when="batched"))
    assert not outcome.passed
    assert any("another token at" in finding for finding in outcome.findings)


def test_seven_others_are_needed_and_there() -> None:
    found = measured(drift=1e-3, drift_when="batched", drift_batch=7)
    assert found["together"] == 8


def test_a_prefill_beside_is_there() -> None:
    # With eight others, only those who have the long prompt beside them are nine.
    found = measured(drift=1e-3, drift_when="batched", drift_batch=8)
    assert found["prefill"] > 0 and found["together"] == found["staggered"] == 0


def test_the_prefill_fills_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    ask = Asker.ask

    async def counted(self: Asker, path: str, body: dict[str, Any]) -> Reply:
        reply = await ask(self, path, body)
        assert reply.usage is not None
        sent.append(reply.usage.prompt_tokens)
        return reply

    monkeypatch.setattr(Asker, "ask", counted)
    run("batch-invariance", Script(context=8192))
    *others, longest = sorted(sent)
    assert len(others) == 48 and max(others) < 1000
    assert longest > 8192 / 2
