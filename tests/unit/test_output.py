"""The printer takes any text: what others print often has brackets and colons in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.output import print_error
from sparkserve.terminal import console, phase, print_table

if TYPE_CHECKING:
    import pytest

ODD = "[a-z]+ [/bin/sh] :key: \\[x]"


def test_a_phase_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with phase(f"Build {ODD}") as detail:
        detail(ODD)
    assert f"Build {ODD}" in capsys.readouterr().err


def test_an_error_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    error = SparkserveError("FLEET.OPTION", expected=ODD, found=f"1 {ODD}", where=f"2 {ODD}", do=f"3 {ODD}")
    print_error(error, as_json=False)
    assert capsys.readouterr() == ("", f"FLEET.OPTION expected {ODD}, found 1 {ODD} (2 {ODD}). 3 {ODD}\n")


def test_a_name_in_an_error_does_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    found = "model \x1b[31mred\u202eder\x9b1m\nsecond line, größer 明"
    print_error(SparkserveError("FLEET.OPTION", expected="a", found=found, where="b", do="c"), as_json=False)
    said = capsys.readouterr().err
    assert "model \\x1b[31mred\\u202eder\\x9b1m\nsecond line, größer 明" in said


def test_a_line_and_a_table_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console.print(ODD)
    print_table(("setting", "value"), [("environment", ODD)])
    out, err = capsys.readouterr()
    assert ODD in out
    assert err == f"{ODD}\n"


def test_what_others_wrote_does_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    wrote = "faster\x1b[2J\u202e"
    console.print(wrote)
    print_table(("name", "why"), [("r7", wrote)])
    out, err = capsys.readouterr()
    assert err == "faster\\x1b[2J\\u202e\n"
    assert out.splitlines()[1].split() == ["r7", "faster\\x1b[2J\\u202e"]


def test_a_row_elsewhere_is_one_line_without_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("setting", "value"), [("arguments", "x" * 300), ("gates", "none")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["setting", "value"], ["arguments", "x" * 300], ["gates", "none"],
    ]  # fmt: skip
    assert all(line == line.rstrip() for line in lines)


def test_a_narrow_terminal_cuts_no_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    cells = ("engine-cpu", "wheel", "nvidia-nothing", "2.13.0+cpu.long", "1,234,567", "0123456789ab")
    print_table(("Profile", "Kind", "Name", "Version", "Bytes", "sha256"), [cells])
    out = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 40
    # Folded cells read downwards: no letter is lost.
    assert sorted(c for c in out if not c.isspace()) == sorted(
        "".join(cells) + "ProfileKindNameVersionBytessha256"
    )


def test_a_file_may_be_a_pipe_that_has_no_name() -> None:
    code = "import pathlib; from sparkserve.output import write_file"
    code += "; write_file(pathlib.Path('/dev/stdout'), 'x\\n')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr
