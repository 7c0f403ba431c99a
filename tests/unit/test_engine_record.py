"""What is written down about a running engine survives crashes, reboots, reused pids and editors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from engine_values import run

from sparkserve.engine import procfs
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    files = NodeFiles(tmp_path, "local-single", "spark-0")
    files.prepare()
    return files


def me() -> procfs.Process:
    process = procfs.find(os.getpid())
    assert process is not None
    return process


def test_round_trip(files: NodeFiles) -> None:
    files.save(run(me()))
    assert files.load() == run(me()).model_copy(update={"started_at": files.load().started_at})  # type: ignore[union-attr]
    files.remove()
    assert files.load() is None


def test_reused_pid_is_another_process(files: NodeFiles) -> None:
    before = run(procfs.Process(os.getpid(), me().start - 1))
    assert run(me()).alive()
    assert not before.alive()
    assert not before.leftover()


def test_other_boot(files: NodeFiles) -> None:
    assert not run(me(), boot_id="another").alive()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "sparkserve.run/2"}', "\0\xff"])
def test_damaged_record_is_an_error_with_a_way_out(files: NodeFiles, text: str) -> None:
    files.run.write_text(text, encoding="latin-1")
    with pytest.raises(SparkserveError) as caught:
        files.load()
    assert caught.value.id == "ENGINE.STATE"
    assert "./sparkserve down --fleet local-single" in caught.value.do
    assert "http" not in caught.value.found


def test_an_answer_is_recorded_only_for_the_engine_that_runs(files: NodeFiles) -> None:
    assert files.answered(run(me()), 0.5).canary is not None
    assert files.load() is None
    files.save(run(procfs.Process(1, 1)))
    files.answered(run(me()), 0.5)
    other = files.load()
    assert other is not None and other.canary is None
    files.save(run(me()))
    files.answered(run(me()), 0.5)
    found = files.load()
    assert found is not None and found.canary is not None and found.canary.seconds == 0.5


def test_old_log_is_kept_once(files: NodeFiles) -> None:
    for text in ("first", "second", "third"):
        files.prepare()
        files.log.write_text(text)
    assert files.log.read_text() == "third"
    assert files.log.with_name("spark-0.log.1").read_text() == "second"
    assert len(list(files.log.parent.iterdir())) == 2
