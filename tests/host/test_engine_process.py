"""Life and death of an engine under the real bubblewrap; the engine is a small HTTP server from tests/unit.

Costs 10 s. Needs `bwrap` on PATH and user namespaces; no Nix, no root.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import engine_values
import fake_checkout
import pytest
from fake_checkout import PREFIX, SCRIPT

from sparkserve.engine import once, process, procfs, ready, status
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sparkserve.engine.record import Run


@pytest.fixture
def files(tmp_path: Path) -> Iterator[NodeFiles]:
    files = NodeFiles(tmp_path, "local-single", "spark-0")
    yield files
    run = files.load()
    if run is not None:
        process.kill(run, files)


@pytest.fixture
def start(files: NodeFiles, tmp_path: Path) -> Callable[[str], Run]:
    def started(fault: str = "") -> Run:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        plan = engine_values.plan(port=port, binds=[PREFIX, SCRIPT], env={"FAULT": fault})
        return process.start(plan, fake_checkout.host_closure(), tmp_path, files)

    return started


def everything(run: Run) -> list[int]:
    """All pids of a start: bubblewrap, PID 1, launcher, scheduler."""
    end = time.monotonic() + 5
    while len(pids := procfs.tree(run.monitor.pid)) < 4 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(pids) == 4
    return pids


def assert_gone(pids: list[int], files: NodeFiles) -> None:
    alive = [process for pid in pids if (process := procfs.find(pid)) and process.alive()]
    assert alive == []
    assert not files.run.exists()


def test_start_ready_stop(start: Callable[[str], Run], files: NodeFiles) -> None:
    run = start("")
    pids = everything(run)
    assert status.report(files)["state"] == "starting"
    run = ready.wait(run, files, timeout_s=10)
    report = status.report(files)
    assert report["state"] == "ready"
    assert isinstance(report["pss_bytes"], int) and report["pss_bytes"] > 1_000_000
    # Its own session and no way back to this terminal.
    assert os.getsid(run.engine.pid) != os.getsid(0)
    process.stop(run, files)
    assert_gone(pids, files)
    assert "Uvicorn" in files.log.read_text()


def test_start_again_keeps_the_old_log(start: Callable[[str], Run], files: NodeFiles) -> None:
    process.kill(start(""), files)
    process.kill(start(""), files)
    assert files.log.with_name("spark-0.log.1").exists()


def test_engine_that_dies_at_once(start: Callable[[str], Run], files: NodeFiles) -> None:
    with pytest.raises(SparkserveError) as caught:
        ready.wait(start("die"), files, timeout_s=60)
    assert caught.value.id == "ENGINE.START"
    assert "exit code 3" in caught.value.found
    assert "no weights" in caught.value.found


def test_engine_that_ignores_sigterm(
    start: Callable[[str], Run], files: NodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DRAIN_S", 1.0)
    run = ready.wait(start("stubborn"), files, timeout_s=10)
    pids = everything(run)
    seen: list[str] = []
    process.stop(run, files, seen.append)
    assert seen
    assert_gone(pids, files)


@pytest.mark.parametrize("victim", ["engine", "init", "monitor"])
def test_kill_9_of_anything(start: Callable[[str], Run], files: NodeFiles, victim: str) -> None:
    run = ready.wait(start(""), files, timeout_s=10)
    pids = everything(run)
    killed: procfs.Process = getattr(run, victim)
    killed.send(signal.SIGKILL)
    assert killed.wait(5)
    # Without its bubblewrap the engine goes on serving; without its launcher or its PID 1 it is dead.
    run.engine.wait(1)
    assert status.report(files)["state"] == ("ready" if victim == "monitor" else "dead")
    process.stop(run, files)
    assert_gone(pids, files)


def test_bwrap_that_cannot_enter(files: NodeFiles, tmp_path: Path) -> None:
    with pytest.raises(SparkserveError) as caught:
        process.start(
            engine_values.plan(binds=["/no/such/path"]), fake_checkout.host_closure(), tmp_path, files
        )
    assert caught.value.id == "ENGINE.START"
    assert "/no/such/path" in caught.value.found
    assert not files.run.exists()


def test_interrupt_while_starting_is_held_back(files: NodeFiles, tmp_path: Path) -> None:
    """Ctrl-C between fork and record is raised only when the record is there to clean up by."""
    plan = engine_values.plan(binds=[PREFIX, SCRIPT])
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    with pytest.raises(KeyboardInterrupt):
        process.start(plan, fake_checkout.host_closure(), tmp_path, files)
    run = files.load()
    assert run is not None
    process.kill(run, files)
    assert_gone([run.monitor.pid, run.init.pid, run.engine.pid], files)


def test_an_engine_for_a_block(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    plan = engine_values.plan(port=port, binds=[PREFIX, SCRIPT])
    closure = fake_checkout.host_closure()
    with once.serving(plan, closure, tmp_path) as run:
        assert run.canary is not None
        pids = everything(run)
    assert not any((found := procfs.find(pid)) and found.alive() for pid in pids)
    assert "Uvicorn" not in capfd.readouterr().err

    # A gate that fails ends the block so.
    with pytest.raises(SystemExit), once.serving(plan, closure, tmp_path) as run:
        pids = everything(run)
        raise SystemExit("✗ smoke")
    assert not any((found := procfs.find(pid)) and found.alive() for pid in pids)
    assert "Uvicorn" in capfd.readouterr().err
