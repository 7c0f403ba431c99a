"""The file between activation and deployer, and what the programs of a closure say and to whom."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from deployrs_world import World

from sparkserve.deployrs import canary, script
from sparkserve.deployrs.activate import main
from sparkserve.errors import EXIT_CODES
from sparkserve.host import activate

if TYPE_CHECKING:
    from pathlib import Path

CLOSURE = "/nix/store/z57jsnszibspkjwjkrana0pj2bs1jvir-host-local-triangle-spark-1"
# Its deployer's terminal is closed while the activation runs.
ALONE = """
import os, pathlib, signal, sys
from deployrs_world import World

world = World(pathlib.Path(sys.argv[1]))
old, new = world.closure("old"), world.closure("new")
world.bring(old)
before, call = world.now(), world.node.call

def hang_up(*asked):
    os.kill(os.getpid(), signal.SIGHUP)
    return call(*asked)

object.__setattr__(world.node, "call", hang_up)
code = world.deploy(new, confirm=False)
os._exit(0 if (code, world.now()) == (95, before) else 1)
"""
DEAD = {"pid": os.getpid(), "start": 1}


def test_it_has_the_name_that_deploy_rs_deletes(tmp_path: Path) -> None:
    path = canary.place(tmp_path, CLOSURE)
    assert path.name == "deploy-rs-canary-z57jsnszibspkjwjkrana0pj2bs1jvir"


def test_one_that_a_killed_activation_left_is_no_activation(tmp_path: Path) -> None:
    path = tmp_path / "canary"
    for text in ("", "{}", json.dumps(DEAD)):
        path.write_text(text)
        assert not canary.appears(path, 0)
    canary.lay(path)
    assert canary.appears(path, 0)


def test_it_is_not_laid_through_a_link(tmp_path: Path) -> None:
    path, other = tmp_path / "canary", tmp_path / "other"
    other.write_text("mine")
    path.symlink_to(other)
    canary.lay(path)
    assert (path.is_symlink(), other.read_text()) == (False, "mine")


def test_who_comes_too_late_has_nothing_to_delete(tmp_path: Path) -> None:
    path = tmp_path / "canary"
    canary.lay(path)
    assert canary.taken(path, 0) is False
    assert not path.exists()


def test_only_one_of_two_has_it(tmp_path: Path) -> None:
    # Whoever confirms at the last moment: its `rm` succeeds exactly when the activation stays.
    for _ in range(200):
        path = tmp_path / "canary"
        canary.lay(path)
        found: list[bool] = []
        barrier = threading.Barrier(2)

        def delete(
            path: Path = path, found: list[bool] = found, barrier: threading.Barrier = barrier
        ) -> None:
            barrier.wait()
            try:
                path.unlink()
            except FileNotFoundError:
                found.append(False)
            else:
                found.append(True)

        thread = threading.Thread(target=delete)
        thread.start()
        barrier.wait()
        stays = canary.taken(path, 0)
        thread.join()
        assert found == [stays]


def test_a_wait_without_an_activation_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path)
    closure = world.closure("new")
    assert world.run(world.target(closure, activationTimeout=0).wait()) == EXIT_CODES["NODE.ACTIVATE"]
    assert "an activation within 0 s" in " ".join(capsys.readouterr().err.split())


def test_all_that_is_said_is_in_the_log_that_deploy_rs_wants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    new = world.closure("new")
    assert world.deploy(new, logDir=str(tmp_path / "logs")) == 0
    said = capsys.readouterr().err
    log = (tmp_path / "logs/activate-rs-activate.log").read_text()
    for text in ("deploy-rs-activate ends with 0", "confirmed", f"{new} is in effect and current"):
        assert text in said and text in log
    detail = f"PROFILE={new} DRY_ACTIVATE=0 BOOT=0 {new}/deploy-rs-activate"
    assert detail in log and detail not in said
    assert world.deploy(new, debugLogs=True) == 0
    assert detail in capsys.readouterr().err


def test_a_deployer_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    """Nobody reads what it says, and SIGHUP comes: it still goes back."""
    read, write = os.pipe()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(tmp_path)], stderr=write, stdout=write, env=env
    )
    os.close(write)
    os.close(read)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("env", "words"),
    [({}, []), ({"DRY_ACTIVATE": "0", "BOOT": "0"}, []), ({"DRY_ACTIVATE": "1", "BOOT": "0"}, ["--dry-run"])],
)
def test_the_script_activates_by_environment(
    env: dict[str, str], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[tuple[object, ...]] = []
    for name in ("DRY_ACTIVATE", "BOOT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(activate, "main", lambda *asked: met.append(asked))
    script.main(CLOSURE, [])
    assert met == [(CLOSURE, "activate", words)]


def test_nothing_is_left_to_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    new = world.closure("new")
    assert world.deploy(new, "--boot", confirm=False) == EXIT_CODES["CLI.USAGE"]
    assert world.now() == (None, None, {}) and world.called == []
    monkeypatch.setenv("BOOT", "1")
    monkeypatch.setattr(activate, "main", pytest.fail)
    with pytest.raises(SystemExit) as end:
        script.main(CLOSURE, [])
    assert end.value.code == EXIT_CODES["CLI.USAGE"]


def test_words_do_not_activate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(activate, "main", pytest.fail)
    for words, code in ((["--help"], 0), (["now"], 2)):
        with pytest.raises(SystemExit) as end:
            script.main(CLOSURE, words)
        assert end.value.code == code
    with pytest.raises(SystemExit) as end:
        main(CLOSURE, ["--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.count("sage: ") == 2


@pytest.fixture(autouse=True)
def _hangup() -> object:
    """main() ignores it for good, as a program of its own may."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)
