"""A program that stays started on a node: its commands are what they are when each is started alone."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from sparkserve import commands
from sparkserve.errors import SparkserveError
from sparkserve.resident import Answer, NoAnswerError, Resident
from sparkserve.runner import SSH, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

# The build sandbox has no /bin/sh.
SHELL = shutil.which("sh")
PROGRAM = """
import fcntl, os, sys, time
from sparkserve import resident

def run(argv):
    word, *more = argv[1:] if "/" in argv[0] else argv
    if word == "say":
        print(more[0], end="")
        print(more[1], end="", file=sys.stderr)
        sys.exit(int(more[2]))
    if word == "pid":
        print(os.getpid(), os.getppid(), len(sys.stdin.read()))
    if word == "become":
        os.execvp(more[0], more)
    if word == "fail":
        raise ValueError("a defect")
    if word == "die":
        os.kill(os.getppid() if more else os.getpid(), 9)
    if word == "wait":
        time.sleep(60)

if sys.argv[1:] == ["deploy", "member", "serve"]:
    OLD or resident.serve(run)
    sys.exit(2 if OLD else 0)
print("alone", *sys.argv[1:])
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Resident]:
    """One on this machine."""
    with (tmp_path / "err").open("w+") as err:
        found = Resident(start(program(tmp_path / "sparkserve"), err), err)
        yield found
        found.end()


def program(path: Path, *, old: bool = False) -> Path:
    """A program like ours; an `old` one does not know how to stay."""
    path.write_text(f"#!{sys.executable}\nOLD = {old}\n{PROGRAM}")
    path.chmod(0o755)
    return path


def start(path: Path, err: IO[str] | None = None) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [str(path), "deploy", "member", "serve"]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=err, text=True, env=env)


def test_a_command_has_its_own_output_and_exit_code(made: Resident) -> None:
    for code in (0, secrets.randbelow(255) + 1, 0):
        out, err = secrets.token_hex(8) + "\nµ", secrets.token_hex(100_000)  # more than a pipe holds
        assert made.ask(["say", out, err, str(code)], 20) == Answer(code, out, err)


def test_each_runs_in_a_process_of_its_own_without_input(made: Resident) -> None:
    said = [made.ask(["pid"], 20).out.split() for _ in range(2)]
    assert said[0][0] != said[1][0]
    assert said[0][1:] == said[1][1:] == [str(made.process.pid), "0"]


def test_it_may_become_another_program(made: Resident) -> None:
    assert made.ask(["become", "sh", "-c", "echo $0 $1; exit 7", "a b", "c"], 20) == Answer(7, "a b c\n", "")


def test_a_command_that_dies_takes_nothing_with_it(made: Resident) -> None:
    assert made.ask(["die"], 20).code == 128 + 9
    failed = made.ask(["fail"], 20)
    assert failed.code == 1 and "a defect" in failed.err
    assert made.ask(["say", "x", "", "0"], 20).out == "x"


def test_after_a_timeout_it_runs_no_more(made: Resident) -> None:
    made.ask(["pid"], 20)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        made.ask(["wait"], 0.3)
    assert time.monotonic() - begin < 10 and not made.running


def test_without_an_answer_it_says_so(made: Resident) -> None:
    made.ask(["pid"], 20)
    with pytest.raises(NoAnswerError) as caught:
        made.ask(["die", "parent"], 20)
    assert caught.value.started and not made.running


def test_it_ends_with_its_deployer(tmp_path: Path) -> None:
    with start(program(tmp_path / "sparkserve")) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.stdin.close()
        assert process.wait(10) == 0


def fake_ssh(folder: Path) -> dict[str, str]:
    """An ssh whose nodes are this machine."""
    folder.mkdir()
    ssh = folder / "ssh"
    calls = shlex.quote(str(folder / "calls"))
    ssh.write_text(f'#!{SHELL}\nfor last; do :; done\necho "$last" >>{calls}\neval "exec $last"\n')
    ssh.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    file = tmp_path / "config"
    file.write_text("")
    return file


def call(path: Path, *words: str, timeout_s: float = 20) -> commands.Command:
    return commands.Command((str(path), *words), commands.Safety.READS_HOSTS, timeout_s, resident=True)


def test_over_ssh_it_is_started_once_for_a_node(tmp_path: Path, config: Path) -> None:
    path = program(tmp_path / "sparkserve")
    with SSH(config, env=fake_ssh(tmp_path / "bin")) as ssh:
        pids = {ssh.run("a", call(path, "pid")).out.split()[1] for _ in range(3)}
        assert ssh.run("a", call(path, "say", "out", "err", "3")) == Result(3, "out", "err")
        with pytest.raises(SparkserveError, match="no end after 0 s") as caught:
            ssh.run("a", call(path, "wait", timeout_s=0.3))
        assert caught.value.id == "NODE.COMMAND"
        # What is started anew is another one, and answers what it is asked.
        again = ssh.run("a", call(path, "pid")).out.split()[1]
        other = ssh.run("b", call(path, "pid")).out.split()[1]
        beside = ssh.run("b", call(tmp_path / "activate", "pid")).out.split()[1]
    calls = (tmp_path / "bin/calls").read_text().splitlines()
    assert len(pids) == 1 and len({*pids, again, other}) == 3 and beside == other
    assert calls.count(f"{path} deploy member serve") == 3
    assert not any(running(int(pid)) for pid in (*pids, again, other))


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_that_is_too_old_is_started_for_each(tmp_path: Path, config: Path) -> None:
    path = program(tmp_path / "sparkserve", old=True)
    with SSH(config, env=fake_ssh(tmp_path / "bin")) as ssh:
        for _ in range(2):
            assert ssh.run("a", call(path, "x", "y")).out == "alone x y\n"
    calls = (tmp_path / "bin/calls").read_text().splitlines()
    assert [line.removeprefix(f"{path} ") for line in calls[:3]] == ["deploy member serve", "x y", "x y"]


def test_a_node_that_is_gone_is_unreachable(tmp_path: Path, config: Path) -> None:
    env = fake_ssh(tmp_path / "bin")
    (tmp_path / "bin/ssh").write_text(f"#!{SHELL}\necho 'Connection refused' >&2; exit 255\n")
    with SSH(config, env=env) as ssh, pytest.raises(SparkserveError) as caught:
        ssh.run("a", call(tmp_path / "sparkserve", "pid"))
    assert caught.value.id == "NODE.UNREACHABLE"


def test_after_the_end_nothing_more_is_sent(tmp_path: Path, config: Path) -> None:
    """Ctrl-C ends the connections while a command is on its way: it must not go by another one."""
    path = tmp_path / "sparkserve"
    path.write_text(f"#!{SHELL}\necho $* >>{tmp_path}/came\nexec sleep 60\n")
    path.chmod(0o755)
    with SSH(config, env=fake_ssh(tmp_path / "bin")) as ssh, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ssh.run, "a", call(path, "change", timeout_s=50))
        while not (tmp_path / "came").exists():
            time.sleep(0.01)
        ssh.close()
        assert asked.result(20).code == -signal.SIGTERM
        with pytest.raises(SparkserveError, match="an end of the connection before it began"):
            ssh.run("a", call(path, "change"))
    assert (tmp_path / "came").read_text() == "deploy member serve\n"


def test_one_that_dies_leaves_no_descriptor(tmp_path: Path, config: Path) -> None:
    path = program(tmp_path / "sparkserve")
    with SSH(config, env=fake_ssh(tmp_path / "bin")) as ssh:
        open_files = []
        for _ in range(3):
            os.kill(int(ssh.run("a", call(path, "pid")).out.split()[1]), signal.SIGKILL)
            while ssh._residents["a", commands.stay(str(path))].running:
                time.sleep(0.01)
            open_files.append(len(list(Path("/proc/self/fd").iterdir())))
        assert open_files[0] == open_files[-1]


def test_what_only_reads_may_not_make_it_change(tmp_path: Path, config: Path) -> None:
    with SSH(config) as ssh, pytest.raises(SparkserveError) as caught:
        ssh.run("a", commands.deploy_member(str(tmp_path), "note", "0123456789ab", "1", "x"))
    assert caught.value.id == "NODE.SAFETY"


def test_the_member_commands_stay() -> None:
    assert commands.deploy_member("/p", "look").resident
    assert commands.deploy_effect("/p", "0123456789ab", 1, "stop", commands.reads("true")).resident
