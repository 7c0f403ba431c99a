"""The runners: refusal by safety class, errors in words, what stays behind."""

from __future__ import annotations

import os
import shutil
import stat
import time
from typing import TYPE_CHECKING

import pytest

from sparkserve import commands, runner
from sparkserve.commands import Command, Safety
from sparkserve.errors import SparkserveError
from sparkserve.runner import SSH, Local, Recorded, Result

if TYPE_CHECKING:
    from pathlib import Path


# The build sandbox has no /bin/sh.
SHELL = shutil.which("sh")


def fake_ssh(folder: Path, script: str) -> dict[str, str]:
    """An environment whose ssh is `script`; the call's argv goes to `folder`/calls."""
    folder.mkdir(exist_ok=True)
    program = folder / "ssh"
    program.write_text(f'#!{SHELL}\necho "$@" >>{folder}/calls\n{script}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


@pytest.mark.parametrize("made", [Local(), Recorded(allow=Safety.READS_HOSTS)])
def test_without_a_word_a_runner_only_reads(made: runner.Runner) -> None:
    made.run("spark-1", commands.reads("true"))
    with pytest.raises(SparkserveError, match="at most reads hosts; found one that changes hosts: touch x"):
        made.run("spark-1", commands.changes("touch", "x"))


def test_local_runs_and_check_tells() -> None:
    assert runner.check(Local(), "here", commands.reads("echo", "a b")) == "a b\n"
    with pytest.raises(SparkserveError, match="exit code 3: no; where: here") as caught:
        runner.check(Local(), "here", commands.reads("sh", "-c", "echo no >&2; exit 3"))
    assert caught.value.id == "NODE.COMMAND"


def test_feed_is_stdin() -> None:
    assert runner.check(Local(), "here", commands.reads("cat"), feed=["echo", "fed"]) == "fed\n"


def test_a_command_that_does_not_end_is_killed() -> None:
    begin = time.monotonic()
    with pytest.raises(SparkserveError, match="no end after 0 s"):
        Local().run("here", Command(("sleep", "60"), Safety.READS_HOSTS, 0.2))
    assert time.monotonic() - begin < 5


def test_ssh_calls_and_closes(tmp_path: Path) -> None:
    config = tmp_path / "a folder with spaces" / "config"
    config.parent.mkdir()
    config.write_text("")
    with SSH(config, env=fake_ssh(tmp_path / "bin", "echo out; echo err >&2; exit 7")) as made:
        assert made.run("spark-1", commands.reads("true")) == Result(7, "out\n", "err\n")
        assert " " not in str(made.config)
        assert made.config.read_text() == ""
    assert list((tmp_path / "run/sparkserve").iterdir()) == []
    calls = (tmp_path / "bin/calls").read_text().splitlines()
    assert calls[0].endswith("-T spark-1 -- true")
    assert calls[1] == f"-F {made.config} -o ControlPath={made.config.parent}/%C -O exit spark-1"


def test_an_ssh_that_fails_is_not_a_command_that_fails(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    text = "ssh: connect to host spark-1 port 22: No route to host"
    with SSH(config, env=fake_ssh(tmp_path / "bin", f"echo '{text}' >&2; exit 255")) as made:
        with pytest.raises(SparkserveError, match="No route to host") as caught:
            made.run("spark-1", commands.reads("true"))
        assert caught.value.id == "NODE.UNREACHABLE"
    # A bad line in the owner's settings, or LogLevel QUIET there: 255 without a word of the command's.
    for text in ("echo config: line 1: Bad configuration option: bogus >&2;", ""):
        with SSH(config, env=fake_ssh(tmp_path / "bin", f"{text} exit 255")) as made:
            with pytest.raises(SparkserveError) as caught:
                made.run("spark-1", commands.reads("true"))
            assert caught.value.id == "NODE.UNREACHABLE"
            with pytest.raises(SparkserveError) as caught:
                list(made.lines("spark-1", commands.reads("true")))
            assert caught.value.id == "NODE.UNREACHABLE"
    with SSH(config, env=fake_ssh(tmp_path / "bin", "echo half; echo mine >&2; exit 255")) as made:
        assert made.run("spark-1", commands.reads("true")).code == 255


def test_an_ssh_that_hangs_keeps_nobody_at_the_end(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    begin = time.monotonic()
    with (
        SSH(config, env=fake_ssh(tmp_path / "bin", "exec sleep 60")) as made,
        pytest.raises(SparkserveError, match="no end after"),
    ):
        made.run("spark-1", Command(("true",), Safety.READS_HOSTS, 0.2))
    assert time.monotonic() - begin < 20


def test_recorded_answers_by_node_and_line() -> None:
    made = Recorded({("a", "true"): Result(1), "true": Result(2)})
    assert [made.run(node, commands.reads("true")).code for node in ("a", "b")] == [1, 2]
    assert made.run("a", commands.reads("other")) == Result(0)
    assert made.of("a") == ["true", "other"]


def test_lines_come_as_they_are_written_and_closing_ends_the_command(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    script = f'case "$*" in *"-O exit"*) exit; esac; echo $$ >{tmp_path}/pid; echo one; exec sleep 60'
    with SSH(config, env=fake_ssh(tmp_path / "bin", script)) as made:
        for end in ("close of the iterator", "close of the runner"):
            lines = made.lines("spark-1", commands.reads("true"))
            assert next(lines) == "one"
            pid = int((tmp_path / "pid").read_text())
            if end == "close of the iterator":
                lines.close()
            else:
                made.close()
                with pytest.raises(SparkserveError):
                    next(lines)
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def test_the_stdin_of_lines_is_open_until_the_iterator_ends(tmp_path: Path) -> None:
    script = f"trap '' TERM; readlink /proc/$$/fd/0; cat; echo ended >{tmp_path}/ended"
    lines = Local().lines("here", commands.reads("sh", "-c", script))
    assert next(lines).startswith("pipe:")
    lines.close()
    assert (tmp_path / "ended").exists()


def test_lines_of_a_command_that_fails(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    text = "Connection to spark-1 closed by remote host."
    with SSH(config, env=fake_ssh(tmp_path / "bin", f"echo one; echo '{text}' >&2; exit 255")) as made:
        lines = made.lines("spark-1", commands.reads("true"))
        assert next(lines) == "one"
        with pytest.raises(SparkserveError, match="closed by remote host") as caught:
            next(lines)
        assert caught.value.id == "NODE.UNREACHABLE"
    with pytest.raises(SparkserveError, match="exit code 3: no") as caught:
        list(Local().lines("here", commands.reads("sh", "-c", "echo no >&2; exit 3")))
    assert caught.value.id == "NODE.COMMAND"
    assert list(Local().lines("here", commands.reads("echo", "a"))) == ["a"]
    with pytest.raises(SparkserveError, match="at most reads hosts"):
        Local().lines("here", commands.changes("touch", "x"))
