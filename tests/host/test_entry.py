"""The entry script, from nothing to a harness, with real Nix, venv, signals and locks. Costs a minute."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stub_clone import Clone

SOURCE = Path(__file__).parents[2]
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def paragraph(err: str, id: str) -> None:
    """The last line is the error in its one form."""
    assert re.fullmatch(rf"{id} expected .+, found .+ \(.+\)\. .+", err.splitlines()[-1]), err


def session(leader: int) -> list[int]:
    """The processes of a session, other than its leader."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            pid, fields = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
            found += [pid] if int(fields[3]) == leader != pid else []
    return found


def test_first_start_then_nothing_to_do(clone: Clone) -> None:
    begin = time.monotonic()
    code, out, err = clone.run(
        "up", "--x", "a b", STUB_EXIT="7", PYTHONPATH="/x", LD_PRELOAD="", GIT_DIR="/x"
    )
    first = time.monotonic() - begin
    assert code == 7
    assert out.startswith("first up --x a b\n")
    assert re.search(r"^making the bootstrap environment \.\.\. \d+ s$", err, re.MULTILINE)
    assert "pins fetch stage0 base tools harness" in err
    assert re.search(r"^building the harness \.\.\. \d+ s$", err, re.MULTILINE)
    # A server must not keep the lock, and the closure must not see the caller's Python and git.
    assert "/lock" not in out
    assert not {"PYTHONPATH", "LD_PRELOAD", "GIT_DIR"} & {line.partition("=")[0] for line in out.splitlines()}
    assert f"SPARKSERVE_CHECKOUT={clone.path}\n" in out
    assert "sandbox = true\n" in out

    times = []
    for _ in range(5):
        begin = time.monotonic()
        assert clone.run("status")[2] == ""
        times.append(time.monotonic() - begin)
    assert statistics.median(times) < first / 10


def test_first_fetch_takes_the_sources_that_the_user_names(clone: Clone) -> None:
    err = clone.run("pins", "fetch", "engine-cpu", "--mirror", "http://mirror.example/debian")[2]
    assert "pins fetch stage0 base tools harness engine-cpu --mirror http://mirror.example/debian\n" in err


def test_not_root(clone: Clone) -> None:
    code, out, err = clone.run("up", "--fleet", "a", under=NOBODY)
    assert (code, out) == (10, "")
    paragraph(err, "HOST.ROOT")
    assert "sudo ./sparkserve up --fleet a" in err
    assert len(err.splitlines()) == 1


def test_an_error_before_the_harness_is_json_when_asked_for(clone: Clone) -> None:
    code, out, err = clone.run("up", "--json", 'a "b" \\ &\n\tc', under=NOBODY)
    assert (code, err) == (10, "")
    said = json.loads(out)
    assert list(said) == ["error", "exit_code", "expected", "found", "where", "do"]
    assert (said["error"], said["exit_code"], said["where"]) == ("HOST.ROOT", 10, "this shell")
    assert said["do"] == 'Run: sudo ./sparkserve up --json a "b" \\ &  c'


def test_help_and_version_need_no_root_and_no_harness(clone: Clone) -> None:
    assert clone.run("--version", under=NOBODY) == (0, "sparkserve, version 1.2.3\n", "")
    code, out, err = clone.run("--help", under=NOBODY)
    assert (code, err) == (0, "")
    assert "Commands: up" in out
    assert not (clone.path / ".sparkserve").exists()


def test_the_doctor_needs_no_root_no_harness_and_no_nix(clone: Clone) -> None:
    for name in ("__init__.py", "given.py", "doctor"):
        source, place = SOURCE / "src/sparkserve" / name, clone.path / "src/sparkserve" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place)
    code, out, err = clone.run("doctor", "selftest", under=NOBODY, PATH="/usr/bin:/bin")
    assert (code, err) == (0, "")
    assert " ids flipped, " in out
    assert clone.run("doctor", "--only", "x", under=NOBODY, PATH="/usr/bin:/bin")[0] == 2
    assert not (clone.path / ".sparkserve").exists()


def test_completion_needs_no_root_once_there_is_a_harness(clone: Clone) -> None:
    assert clone.run("completion", "bash", under=NOBODY)[0] == 10
    clone.run("up")
    code, out, err = clone.run("completion", "bash", under=NOBODY)
    assert (code, out.splitlines()[0], err) == (0, "first completion bash", "")


def test_twice_at_once(clone: Clone) -> None:
    with clone.start("one") as one, clone.start("two") as two:
        outs = [child.communicate(timeout=120) for child in (one, two)]
    assert [out.splitlines()[0] for out, _ in outs] == ["first one", "first two"]
    errors = sorted((err for _, err in outs), key=len)
    assert errors[0].splitlines() == ["Another ./sparkserve is preparing this checkout; waiting for it ..."]
    assert "building the harness" in errors[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("step", ["making the bootstrap environment", "building the harness"])
def test_interrupted(clone: Clone, step: str, number: signal.Signals) -> None:
    # The folder's name, since a build that another run finished would be there at once.
    clone.mark(f"slow {clone.path}" if step.startswith("building") else "quick")
    with clone.start("up") as child:
        assert child.stderr is not None
        seen = ""
        while step not in seen:
            seen += os.read(child.stderr.fileno(), 1000).decode()
        time.sleep(1)  # into the step
        if number == signal.SIGINT:
            os.killpg(child.pid, number)  # Ctrl-C in a terminal
        else:
            child.send_signal(number)
        begin = time.monotonic()
        child.wait(timeout=60)
        if number != signal.SIGKILL:
            assert child.returncode == 130
            assert time.monotonic() - begin < 10
            assert "Interrupted" in child.stderr.read()
        else:
            # What it ran goes on; the next start copes, but its end would come too late for this test.
            for pid in session(child.pid):
                os.kill(pid, signal.SIGKILL)
    clone.mark("again")
    code, out, _ = clone.run("up")
    assert (code, out.splitlines()[0]) == (0, "again up")
    assert not list((clone.path / ".sparkserve").glob("*.new"))


def test_edits(clone: Clone) -> None:
    clone.run("a")
    clone.mark("second")
    assert clone.run("a")[1].startswith("second a\n")

    (clone.path / "README.md").write_text("text")
    assert clone.run("a")[2] == ""

    new = clone.path / "src/new.py"
    new.write_text("")
    for _ in range(2):
        assert "src/new.py (git add it)" in clone.run("a")[2]
    clone.git("add", "src/new.py")
    assert "git add" not in clone.run("a")[2]
    assert clone.run("a")[2] == ""
    clone.git("rm", "--force", "--quiet", "src/new.py")
    assert "building the harness" in clone.run("a")[2]

    (clone.path / "nix/pins/tools.json").write_text('{"pins": [ ]}')
    err = clone.run("a")[2]
    assert "pins fetch" in err
    assert "bootstrap environment" not in err


def test_an_environment_that_moves_the_store_or_confuses_git(clone: Clone) -> None:
    junk = clone.path / ".home/junk"
    code, out, err = clone.run(
        "up",
        NIX_REMOTE=f"local?root={junk}",
        NIX_STATE_DIR=str(junk),
        NIX_STORE_DIR=str(junk),
        NIX_CONF_DIR=str(junk),
        GIT_CONFIG_COUNT="foo",
    )
    assert code == 0, err
    assert not junk.exists()
    assert str(junk) not in out
    assert "GIT_CONFIG_COUNT=1\n" in out


def test_nix_with_the_settings(clone: Clone) -> None:
    assert clone.run("nix", "--version")[1].startswith("nix (Nix) ")
    shown = clone.run("nix", "show-config", NIX_CONFIG="sandbox = false\ncores = 1")[1]
    assert "sandbox = true\n" in shown
    assert "cores = 1\n" in shown
    assert "substituters = \n" in shown
