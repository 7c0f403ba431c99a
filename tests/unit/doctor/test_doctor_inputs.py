"""Files that a command line names, and streams that take nothing: one sentence, and no wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkserve.cli.main import main
from sparkserve.doctor import selftest
from sparkserve.errors import SparkserveError
from sparkserve.plan import load

ROOT = Path(__file__).parents[3]
BASE = selftest.base()
SCHEMA = {"schema": "sparkserve.facts/1", "files": {}, "commands": {}}
# Where a shell is: not in the sandbox of a build.
SHELL = "/bin/sh"


def doctor(*arguments: str, streams: str = "") -> subprocess.CompletedProcess[str]:
    """Run the doctor alone, with 1 GiB of memory at most and 20 s."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30));"
        "sys.path.insert(0, sys.argv.pop(1)); from sparkserve.doctor.command_line import main;"
        "sys.exit(main(sys.argv[1:]))"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, str(ROOT / "src"), *arguments]
    if streams:
        argv = [SHELL, "-c", f'exec "$@" {streams}', "sh", *argv]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)


def refused(*arguments: str) -> str:
    done = doctor(*arguments)
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


WRONG: list[dict[str, Any]] = [
    {"files": [1]},
    {"files": None},
    {"files": {"/x": 1}},
    {"files": {"/x": {"text": 1}}},
    {"files": {"/x": {"names": 5}}},
    {"files": {"/" * 1_000_000: None}},
    {"commands": []},
    {"commands": {"uname -m": 5}},
    {"commands": {"uname -m": {"code": "x", "out": ""}}},
    {"commands": {"uname -m": {"code": 0}}},
    {"plan": 7},
    {"checkout": ["x"]},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: str(wrong)[:40])
def test_a_bundle_of_another_form_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(SCHEMA | wrong))
    assert "is not what doctor collect writes" in refused("--facts", str(path))
    assert "is not what doctor collect writes" in refused("--facts", str(tmp_path))


def odd(tmp_path: Path, name: str) -> str:
    path = tmp_path / name
    if name == "zero":
        return "/dev/zero"
    if name == "fifo":
        os.mkfifo(path)
    elif name == "deep":
        path.write_text("[" * 100_000)
    elif name == "large":
        with path.open("wb") as file:
            file.truncate(40 << 20)
    elif name == "folder":
        path.mkdir()
        os.mkfifo(path / "facts.json")
    else:
        path.write_bytes(b"\xff\xfe{}")
    return str(path)


@pytest.mark.parametrize("name", ["zero", "fifo", "deep", "large", "folder", "bytes"])
def test_what_is_no_file_of_json_is_refused_at_once(name: str, tmp_path: Path) -> None:
    path = odd(tmp_path, name)
    for option in ("--facts", "--plan"):
        said = refused(option, path)
        assert "no JSON" in said or name == "folder"
        assert ("no regular file" in said) == (
            name in ("zero", "fifo") or (name, option) == ("folder", "--facts")
        )
    with pytest.raises(SparkserveError, match=r"PLAN\.SCHEMA"):
        load(Path(path))


def test_a_plan_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for value in ({}, {"plans": [BASE["plan"]]}, {"schema": 7}):
        path.write_text(json.dumps(value))
        assert "fleet plan FLEET --node NAME" in refused("--plan", str(path))
    path.write_text(json.dumps(BASE["plan"] | {"schema": "sparkserve.plan/2"}))
    (tmp_path / "facts.json").write_text(json.dumps(BASE))
    done = doctor("--plan", str(path), "--facts", str(tmp_path), "--only", "NIX.PLAN")
    assert (done.returncode, "sparkserve.plan/2" in done.stdout) == (0, True)


BEFORE = [["--facts", "/x"], ["--plan", "/etc/passwd"], ["--only", "FABRIC"], ["--list"]]


@pytest.mark.parametrize("option", BEFORE)
@pytest.mark.parametrize("action", [["collect", "out"], ["selftest"], ["explain", "FABRIC"]])
def test_options_that_an_action_does_not_look_at_are_refused(
    option: list[str],
    action: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    existing = [str(tmp_path) if word == "/x" else word for word in option]
    assert f"{action[0]} does not take it" in refused(*existing, *action)
    with pytest.raises(SystemExit) as caught:
        main(["doctor", *existing, *action])
    assert caught.value.code == 2
    assert f"{action[0]} does not take it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_an_area_has_that_area() -> None:
    ids = [line.split()[1] for line in doctor("--list", "--only", "nix").stdout.splitlines()]
    assert len(ids) > 3
    assert {id.partition(".")[0] for id in ids} == {"NIX"}


@pytest.mark.skipif(not Path(SHELL).exists(), reason="it needs a shell")
def test_streams_that_take_nothing_are_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(json.dumps(BASE))
    asked = ("--facts", str(tmp_path))
    closed = doctor(*asked, streams=">&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    assert doctor(*asked, streams=">&- 2>&- <&-").returncode == 0
    full = doctor(*asked, streams=">/dev/full")
    assert (full.returncode, full.stderr) == (12, "HOST.DISK stdout takes no more: No space left on device\n")
