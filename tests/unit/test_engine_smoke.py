"""The smoke gate against right, wrong and broken answers."""

from __future__ import annotations

import threading

import pytest
from fake_engine import FakeEngine

from sparkserve.engine import smoke
from sparkserve.errors import SparkserveError


def check(fault: str) -> dict[str, str | int | float]:
    with FakeEngine(fault=fault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return smoke.check(server.endpoint, "smollm2-135m")
        finally:
            server.shutdown()


def test_right_answer() -> None:
    result = check("")
    assert result["answer"] == "The capital of France is Paris."
    assert result["completion_tokens"] == 8


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("london", "London"),
        ("unequal", "Yes."),
        ("error", "HTTP 500"),
        ("garbage", "without [DONE]"),
        ("cut", "without [DONE]"),
    ],
)
def test_wrong_answer(fault: str, says: str) -> None:
    with pytest.raises(SparkserveError) as caught:
        check(fault)
    assert caught.value.id == "SMOKE.ANSWER"
    assert says in caught.value.found


def test_nobody_there() -> None:
    with FakeEngine() as server:
        endpoint = server.endpoint
    with pytest.raises(SparkserveError) as caught:
        smoke.check(endpoint, "smollm2-135m")
    assert caught.value.id == "ENGINE.STATE"
    assert "refused" in caught.value.found
