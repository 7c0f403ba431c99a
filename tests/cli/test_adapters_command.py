"""`sparkserve adapters list` and `explain`."""

from __future__ import annotations

import json

import pytest

from sparkserve.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["adapters", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, *capsys.readouterr()


def test_list_and_explain_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--json")
    assert code == 0
    for each in json.loads(out):
        assert json.loads(run(capsys, "explain", each["name"], "--json")[1]) == each
        prose = run(capsys, "explain", each["name"])[1]
        assert all(target in prose for target in each["hooks"].values())
        assert all(f"{name} = " in prose for name in each["settings"])
        assert each["name"] in run(capsys, "list")[1]


def test_unknown_name_shows_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "explain", "oneshot")
    assert code == 56
    assert "oneshot-collectives" in err


def test_verify_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", "--help")
    assert code == 0
    assert "./sparkserve adapters verify --json" in out
