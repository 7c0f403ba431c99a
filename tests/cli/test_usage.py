"""A command line that nothing takes is exit 2: click's words for people, an error object for scripts."""

from __future__ import annotations

import json

import pytest

from sparkserve.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["up", "--nope"], "sparkserve up"),
        (["nope"], "sparkserve"),
        (["diff", "HEAD", ".", "--node", "spark-1"], "sparkserve diff"),  # of commits all nodes are compared
        (["deploy", "--resume", "--api-key-file", "x"], "sparkserve deploy"),
        (["memory", "explain", "tp4-ring", "--output", "x.png"], "sparkserve memory explain"),
    ],
)
def test_wrong_usage(arguments: list[str], where: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code == 2
    error = json.loads(capsys.readouterr().out)
    assert (error["error"], error["exit_code"], error["where"]) == ("CLI.USAGE", 2, where)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "Usage:" in printed.err
