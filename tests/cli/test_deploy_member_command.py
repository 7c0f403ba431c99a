"""`sparkserve deploy member` as a deployer calls it through a runner, and as a script sees it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkserve import commands
from sparkserve.cli.main import main
from sparkserve.deploy import member, members
from sparkserve.deploy.plan import Base
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.runner import Recorded, Result

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from deploy_node import DeployNode, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.commands import Command

PROGRAM = "/nix/store/two/bin/sparkserve"
PLAN = plan(Base(generation=1, path="/nix/store/one"), "/nix/store/two")


def call(*arguments: str) -> Result:
    """What the command line answers."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return Result(int(ended.value.code or 0), out.getvalue(), err.getvalue())


class InProcess(Recorded):
    """Runs the commands' words here."""

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        super().run(node, command, feed=feed)
        assert command.argv[0] == PROGRAM
        return call(*command.argv[1:])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeployNode:
    """The node on which the commands run: `one` is current, `two` is in its store."""
    made = DeployNode(tmp_path / "node")
    made.closure("one")
    made.closure("two")
    made.switch("/nix/store/one")
    monkeypatch.setattr(member, "Member", lambda: made.member)
    return made


def test_through_a_runner(node: DeployNode) -> None:
    """Every verb gives what the node then knows."""
    runner = InProcess()
    assert members.look(runner, "spark-0", PROGRAM) == node.member.look()
    now = members.begin(runner, "spark-0", PROGRAM, PLAN, who := members.deployer()).open
    assert now is not None and now == node.member.look().open
    assert (now.plan, now.deployer) == (PLAN, who)
    now = members.take(runner, "spark-0", PROGRAM, now, "--help").open
    assert now is not None and now.deployer == "--help"
    now = members.note(runner, "spark-0", PROGRAM, now, "it's stopped").open
    assert now is not None and now.steps == ("it's stopped",)
    now = members.decide(runner, "spark-0", PROGRAM, now, "undo").open
    assert now is not None and now.decided == "undo"
    ended = members.end(runner, "spark-0", PROGRAM, now)
    assert ended == node.member.look() and ended.open is None
    assert [line.split()[3] for line in runner.of("spark-0")] == [
        *("look", "begin", "take", "note", "decide", "end")
    ]


def test_an_error_keeps_its_id(node: DeployNode) -> None:
    """What a node refuses is raised as the node says it."""
    node.member.begin(PLAN, "you")
    with pytest.raises(SparkserveError) as raised:
        members.begin(InProcess(), "spark-0", PROGRAM, PLAN, "me")
    assert raised.value.id == "DEPLOY.LEASE"
    assert "by you since" in raised.value.found and raised.value.where == "spark-0"


@pytest.mark.parametrize(
    "result",
    [
        Result(0, "{}x"),
        Result(0, '{"open": 7}'),
        Result(127, "", "no such program"),
        Result(91, '{"error": "DEPLOY.LEASE"}'),
        Result(1, '{"error": "DEPLOY.LEASE", "expected": "", "found": "", "where": "", "do": ""}'),
        Result(91, "[]"),
    ],
)
def test_no_answer(result: Result) -> None:
    """What is no answer of the member, such as of another version, is not taken for one."""
    line = commands.deploy_member(PROGRAM, "look").line()
    with pytest.raises(SparkserveError) as raised:
        members.look(Recorded({line: result}), "spark-0", PROGRAM)
    assert raised.value.id == "NODE.COMMAND" and PROGRAM in raised.value.expected


@pytest.mark.parametrize(
    "words",
    [
        ("begin", "{", "me"),
        ("begin", PLAN.model_dump_json().replace("local-triangle", "No Name"), "me"),
        ("begin", PLAN.model_dump_json().replace("spark-1", "spark-0"), "me"),
        ("take", "0123456789ab", "0", "me"),
        ("decide", "0123456789ab", "1", "perhaps"),
        ("note", "0123456789ab", "1"),
    ],
)
def test_wrong_words(node: DeployNode, words: tuple[str, ...]) -> None:
    """What is no command line says so, as text and as JSON, and changes nothing."""
    before = node.lasting()
    answer = call("deploy", "member", words[0], "--json", "--", *words[1:])
    assert answer.code == EXIT_CODES["CLI.USAGE"]
    assert json.loads(answer.out)["error"] == "CLI.USAGE"
    answer = call("deploy", "member", *words)
    assert answer.code == 2 and answer.out == "" and "Usage:" in answer.err
    assert node.lasting() == before


def test_hidden() -> None:
    """Nobody is led to call it by hand, and who looks gets an example."""
    listed = [line.split() for line in call("deploy", "--help").out.splitlines()]
    assert listed and not any(words[:1] == ["member"] for words in listed)
    for verb in ("look", "begin", "take", "note", "decide", "end"):
        assert f"sparkserve deploy member {verb}" in call("deploy", "member", verb, "--help").out
