"""When the front calls the group healthy, with a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from sparkserve.front import answers
from sparkserve.front.health import Health
from sparkserve.front.state import Group


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(clock, canary_s=5, lost_s=10)


def group(state: str, boot: str = "b1", **values: Any) -> Group:
    return Group.model_validate({"state": state, "boot": boot, **values})


def said(health: Health) -> str:
    """The verdict. A function, since mypy holds a property for constant once it was compared."""
    return health.verdict


def test_up_is_not_ok_before_a_token(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    assert (said(health), answers.health(health).status) == ("proving", 503)
    assert not health.refuses  # the controller has had an answer; let clients in
    health.token()
    assert (said(health), answers.health(health).status) == ("ok", 200)


def test_silence_is_noticed_after_lost_s_and_not_before(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    health.token()
    clock.now += 10
    assert said(health) == "ok"
    clock.now += 0.01
    assert said(health) == "silent"
    assert health.refuses
    answer = answers.health(health)
    assert answer.status == 503
    assert answer.retry_after_s == 10
    health.token()  # late, but it came
    assert said(health) == "ok"


def test_a_boot_that_never_gives_a_token_becomes_silent(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    clock.now += 10.01
    assert said(health) == "silent"


def test_probes_only_when_idle_and_one_at_a_time(health: Health, clock: Clock) -> None:
    assert not health.probe_due()  # down
    health.see(group("up"))
    assert health.probe_due()
    health.probe_sent()
    clock.now += 8
    assert not health.probe_due()  # one is out
    health.probe_ended(None)
    assert health.token_age_s == 8  # counts from when it was asked
    assert health.probe_due()
    health.token()
    for _ in range(20):  # real traffic: a token every second
        clock.now += 1
        assert not health.probe_due()
        health.token()
    clock.now += 5
    assert health.probe_due()


def test_a_failed_probe_is_no_token_and_is_repeated(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    health.probe_sent()
    clock.now += 0.1
    health.probe_ended("refused")
    assert said(health) == "proving"
    assert not health.probe_due()
    clock.now += 1
    assert health.probe_due()  # soon, while nobody has seen a token yet
    health.probe_sent()
    health.probe_ended(None)
    clock.now += 5
    health.probe_sent()
    health.probe_ended("refused")
    clock.now += 4.9
    assert not health.probe_due()
    clock.now += 0.2
    assert said(health) == "silent"
    assert "refused" in health.reason
    assert health.probe_due()


def test_a_hanging_probe_is_seen_as_pending(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    health.token()
    clock.now += 5
    health.probe_sent()
    clock.now += 5.5
    assert said(health) == "silent"
    assert (health.probe.result, health.probe.seconds) == ("pending", 5.5)


@pytest.mark.parametrize(
    ("before", "after", "over"),
    [
        (group("up"), group("down"), True),
        (group("up"), group("starting", "b2"), True),
        (group("up"), group("up", "b2"), True),
        (group("draining"), group("down"), True),
        (group("up"), group("draining"), False),
        (group("draining"), group("up"), False),
        (group("starting"), group("up"), False),
        (group("down"), group("starting", "b2"), True),
    ],
)
def test_when_a_boot_is_over(health: Health, before: Group, after: Group, over: bool) -> None:
    health.see(before)
    assert health.see(after) is over


def test_a_probe_that_is_out_while_draining_still_counts(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    health.probe_sent()
    health.see(group("draining"))
    health.see(group("up"))
    health.probe_ended(None)
    assert said(health) == "ok"


def test_a_token_of_the_boot_before_proves_nothing(health: Health, clock: Clock) -> None:
    health.see(group("up"))
    health.token()
    health.probe_sent()
    health.see(group("starting", "b2"))
    assert said(health) == "starting"
    health.see(group("up", "b2"))
    health.probe_ended(None)  # of the old boot
    assert said(health) == "proving"
    assert health.token_age_s is None


@pytest.mark.parametrize(("state", "retry"), [("starting", 10), ("down", 30), ("draining", 10)])
def test_retry_after(health: Health, state: str, retry: int) -> None:
    health.see(group(state, reason="rank 1 is lost"))
    answer = answers.refusal(health, "/v1/chat/completions")
    assert (answer.status, answer.retry_after_s) == (503, retry)
    assert b"rank 1 is lost" in answer.body
    health.see(group(state, retry_after_s=77))
    assert answers.health(health).retry_after_s == 77


@pytest.mark.parametrize(
    ("data", "proof"),
    [
        (b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', True),
        (b'data: {"text":"a"}\n\n', True),
        (b"event: content_block_delta\ndata: {}\n\n", True),
        (b": ping\n\n", False),
        (b"event: ping\ndata: {}\n\n", False),
        (b"event: message_start\ndata: {}\n\n", False),
        (b'data: {"error": {"message": "aborted"}}\n\n', False),
        (b"data: [DONE]\n\n", False),
    ],
)
def test_what_in_a_stream_is_a_token(data: bytes, proof: bool) -> None:
    assert answers.proves_token(data) is proof


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/health", "/health"),
        (b"/health/?a=b", "/health"),
        (b"/%68ealth", "/health"),
        (b"http://any.host/health", "/health"),
        (b"//health", "/"),
        (b"/", "/"),
        (b"*", "*"),
        (b"http://[::1/health", "/"),
        (b"/v1/models/a%2Fb", "/v1/models/a/b"),
    ],
)
def test_route_is_what_the_engine_would_route_by(target: bytes, path: str) -> None:
    assert answers.route(target) == path
