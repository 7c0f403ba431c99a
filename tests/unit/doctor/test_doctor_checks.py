"""Every check sees its own condition, says what it found and what to do, and is silent on garbage never."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from sparkserve.doctor import report, selftest
from sparkserve.doctor.check import Verdict, all_checks
from sparkserve.doctor.facts import Recorded, bundle
from sparkserve.doctor.judge import judge
from sparkserve.doctor.node import Node

BASE = selftest.base()
FIXTURES = selftest.fixtures()
# Names may be any text; an interface's mtu also says whether it is there; the machine has a second name.
ANY_TEXT = ("/comm", "/cmdline", "ls-files", " true", "/mtu", "/etc/dgx-release")


def test_every_id_flips_alone_and_there_are_many() -> None:
    wrong, flipped, still = selftest.problems()
    assert wrong == []
    assert flipped == len(all_checks()) >= 60
    assert still >= 10


@pytest.mark.parametrize("id", sorted(FIXTURES))
def test_finding_and_fix_are_said(id: str) -> None:
    given = selftest.change(BASE, {"given": FIXTURES[id].get("given", [])})
    answers = selftest.ask(selftest.change(given, FIXTURES[id]["break"]))
    assert FIXTURES[id]["found"] in answers[id].verdict.found
    lines = [line for line in report.lines(list(answers.values()), "host") if f" {id}: " in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"{answers[id].check.severity} {id}: expected ")
    assert lines[0].endswith(f"Fix: {answers[id].fix}")
    assert len(answers[id].fix) > 10
    # A command to type, not a form to fill in.
    assert not re.search(r"\b(INTERFACE|NAME|FILE|PID|UNITS?|PATH|ADDRESS|SHARD|RELEASE)\b", answers[id].fix)
    assert "\n" not in lines[0]


def test_selftest_sees_a_blind_check() -> None:
    blind = all_checks()["FABRIC.MTU"]
    judge = blind.judge
    object.__setattr__(blind, "judge", lambda _: Verdict("pass"))
    try:
        wrong = selftest.problems()[0]
    finally:
        object.__setattr__(blind, "judge", judge)
    assert [each for each in wrong if each.startswith("FABRIC.MTU: pass became pass")]


def test_selftest_sees_a_check_that_minds_the_condition_of_another() -> None:
    eager = all_checks()["FABRIC.FLAPS"]
    judge = eager.judge

    def both(n: Node) -> Verdict:
        own = judge(n)
        return own if own.status == "fail" else all_checks()["FABRIC.MTU"].judge(n)

    object.__setattr__(eager, "judge", both)
    try:
        wrong = selftest.problems()[0]
    finally:
        object.__setattr__(eager, "judge", judge)
    assert [each for each in wrong if each.startswith("FABRIC.MTU: ") and "FABRIC.FLAPS" in each]


def test_selftest_sees_an_id_without_a_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {id: value for id, value in FIXTURES.items() if id != "KERNEL.KHO"}
    monkeypatch.setattr(selftest, "fixtures", lambda: rest)
    assert "KERNEL.KHO has no fixture" in selftest.problems()[0]


def test_garbage_is_unknown_or_a_failure_and_never_a_pass() -> None:
    seed = random.SystemRandom().getrandbits(32)
    dice = random.Random(seed)  # noqa: S311 - it is said when the test fails
    for part in ("files", "commands"):
        for key, value in BASE[part].items():
            if not isinstance(value, str) or key.endswith(ANY_TEXT):
                continue
            garbage = "".join(dice.choice("\x01\x7f\ufffdqz7 \t~=:{,\n") for _ in range(dice.randint(1, 60)))
            garbage = f"\ufffd{garbage}"
            answers = selftest.ask({**BASE, part: {**BASE[part], key: garbage}})
            passed = [
                a.check.id for a in answers.values() if key in a.evidence and a.verdict.status == "pass"
            ]
            assert not passed, (seed, key, garbage)


@pytest.mark.parametrize("round", range(40))
def test_a_host_broken_at_random_ends_in_answers(round: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    dice = random.Random(seed)  # noqa: S311 - it is said when the test fails
    broken: dict[str, Any] = {"plan": _shaken(BASE["plan"], dice), "checkout": "/root/sparkserve"}
    for part in ("files", "commands"):
        broken[part] = {}
        for key, value in BASE[part].items():
            fate = dice.random()
            if fate < 0.15:
                continue
            if isinstance(value, str) and fate < 0.4 and key != "uname -m":
                value = value[: dice.randint(0, len(value))] + dice.choice(
                    ["", "\0", "[", "-1", "{}", "\udcff"]
                )
            broken[part][key] = value
    answers = selftest.ask(broken)
    assert answers.keys() == all_checks().keys(), seed
    assert json.loads(json.dumps(report.as_dict(list(answers.values()), "host")))["schema"], seed
    text = "\n".join(report.lines(list(answers.values()), "host"))
    assert "Traceback" not in text, seed


def _shaken(value: Any, dice: random.Random) -> Any:
    """A plan of another version: keys gone, values of another type."""
    if dice.random() < 0.03:
        return dice.choice([None, 7, "x", [], {}, [None], {"a": 1}])
    if isinstance(value, dict):
        return {key: _shaken(each, dice) for key, each in value.items() if dice.random() > 0.03}
    return [_shaken(each, dice) for each in value] if isinstance(value, list) else value


def test_every_missing_file_is_met() -> None:
    for key in BASE["files"]:
        rest = {name: value for name, value in BASE["files"].items() if name != key}
        assert len(selftest.ask({**BASE, "files": rest})) == len(all_checks())


def test_nothing_but_the_hardware_checks_fall_away_elsewhere() -> None:
    other = selftest.change(BASE, {"commands": {"uname -m": "x86_64\n"}})
    answers = selftest.ask(other)
    for answer in answers.values():
        if answer.check.on == "spark":
            assert answer.verdict.status == "not applicable"
            assert "x86_64" in answer.verdict.why
    assert answers["FABRIC.MTU"].verdict.status == "pass"


@pytest.mark.parametrize("fleet", ["tp3-triangle", "tp4-ring", "tp4-switched"])
def test_checks_understand_our_plans_and_find_nothing_wrong_in_them(fleet: str) -> None:
    path = Path(__file__).parents[2] / "golden" / fleet / "spark-1.json"
    answers = selftest.ask({**BASE, "plan": json.loads(path.read_text())})
    lacks = {a.verdict.why for a in answers.values() if a.verdict.why.startswith("the plan ")}
    # A release is set by those who pin a kernel.
    assert lacks == {"the plan has no host.kernel.release"}
    assert not [a for a in answers.values() if "unknown form" in a.verdict.why]
    failed = [a for a in answers.values() if a.verdict.status == "fail"]
    assert not [a.check.id for a in failed if a.verdict.where.startswith("the plan's ")]


def test_checks_of_the_network_wait_for_live() -> None:
    node = Node(Recorded(BASE, live=False), BASE["plan"])
    answers = judge(node, all_checks().values(), live=False)
    waiting = {a.check.id for a in answers if "--live" in a.verdict.why}
    assert waiting == {id for id, check in all_checks().items() if check.live}
    assert {"FABRIC.PING", "FLEET.KERNEL"} <= waiting
    assert not [key for key in node.facts.commands if key.startswith(("ssh ", "ping "))]


@pytest.mark.parametrize("id", ["", *random.sample(sorted(FIXTURES), 12)])
def test_a_bundle_of_a_host_gives_the_verdicts_of_the_host(id: str) -> None:
    seen = BASE
    if id:
        given = selftest.change(BASE, {"given": FIXTURES[id].get("given", [])})
        seen = selftest.change(given, FIXTURES[id]["break"])
    node = Node(Recorded(seen, live=True), seen["plan"], seen["checkout"])
    first = judge(node, all_checks().values(), live=True)
    again = selftest.ask(
        json.loads(json.dumps(bundle(node.facts) | {"plan": seen["plan"], "checkout": seen["checkout"]}))
    )
    assert [(a.check.id, a.verdict) for a in first] == [(a.check.id, a.verdict) for a in again.values()]
