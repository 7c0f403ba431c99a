"""Readiness against engines that misbehave."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from engine_values import run
from fake_engine import FakeEngine

from sparkserve.engine import procfs, ready, status
from sparkserve.engine.log import Progress
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.engine.record import Run


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    files = NodeFiles(tmp_path, "local-single", "spark-0")
    files.prepare()
    files.log.write_text("server_args=...\nLoad weight begin.\n")
    return files


@contextmanager
def serving(fault: str = "") -> Iterator[Run]:
    with FakeEngine(fault=fault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        process = procfs.find(os.getpid())
        assert process is not None
        yield run(process, port=server.server_port)
        server.shutdown()


def test_ready_after_a_real_answer(files: NodeFiles) -> None:
    seen: list[str] = []
    with serving() as engine:
        files.save(engine)
        found = ready.wait(engine, files, timeout_s=5, detail=seen.append)
    assert found.canary is not None
    assert files.load() == found
    assert seen[0].startswith("loading weights")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("unhealthy", "/health says 503"),
        ("error", "the scheduler is gone"),
        ("garbage", "not a chat completion"),
    ],
)
def test_never_ready(files: NodeFiles, fault: str, says: str) -> None:
    with serving(fault) as engine, pytest.raises(SparkserveError) as caught:
        ready.wait(engine, files, timeout_s=2.0)
    assert caught.value.id == "ENGINE.READY"
    assert says in caught.value.found
    assert files.load() is None


def test_an_endpoint_that_wants_a_key_fails_at_once(files: NodeFiles) -> None:
    begin = time.monotonic()
    with serving("locked") as engine, pytest.raises(SparkserveError) as caught:
        ready.wait(engine, files, timeout_s=60)
    assert time.monotonic() - begin < 30
    assert caught.value.id == "ENGINE.READY"
    assert "401" in caught.value.found
    assert "--api-key" in caught.value.do


def test_whose_first_answer_is_awaited_by_whom(files: NodeFiles) -> None:
    with serving() as engine:
        assert status.state(engine) == "abandoned"
        waiting = engine.model_copy(update={"up": engine.monitor})
        assert status.state(waiting) == "starting"
        gone = procfs.Process(engine.monitor.pid, engine.monitor.start - 1)
        assert status.state(engine.model_copy(update={"up": gone})) == "abandoned"
        assert status.state(files.answered(waiting, 0.1)) == "ready"


def test_a_dead_engine_fails_at_once(files: NodeFiles) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        process = procfs.find(child.pid)
        assert process is not None
    files.log.write_text("Ignore import error when loading x\nRuntimeError: no weights\n")
    files.status.write_text('{"child-pid": 1}\n{"exit-code": 3}\n')
    with pytest.raises(SparkserveError) as caught:
        ready.wait(run(process), files, timeout_s=60)
    assert caught.value.id == "ENGINE.START"
    assert "exit code 3" in caught.value.found
    assert "no weights" in caught.value.found
    assert "Ignore" not in caught.value.found


def test_progress_sees_lines_that_come_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    progress = Progress(log)
    steps = []
    for piece in ("server_args=1\nLoad wei", "ght begin\n", "Load weight end\nUvicorn run", "ning on x\n"):
        with log.open("a") as file:
            file.write(piece)
        steps.append(progress.look())
    assert steps == ["arguments read, importing", "loading weights", "weights loaded", "listening"]
