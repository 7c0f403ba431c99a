"""What a machine refuses is one paragraph with an exit code, wherever it happens."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparkserve import checkout, disk, output
from sparkserve.cli.main import main
from sparkserve.engine import procfs, smoke, status
from sparkserve.engine.record import Canary, NodeFiles
from sparkserve.errors import SparkserveError
from sparkserve.fleet import DEFAULT_FLEET, names
from sparkserve.local import fleets

if TYPE_CHECKING:
    from sparkserve.engine.record import Run


sys.path.append(str(Path(__file__).parents[1] / "unit"))
import engine_values


@pytest.fixture(autouse=True)
def _empty_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--json"])
    error: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert caught.value.code == error["exit_code"]
    return error


def test_no_nix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hosts/desk").mkdir(parents=True)
    (tmp_path / "hosts/desk/fleet.nix").write_text("{ }")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(names, "require_tracked", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("nix") is None
    error = said(capsys, "fleet", "plan", "desk")
    assert (error["error"], error["where"]) == ("HOST.SYSTEM", "nix")


@pytest.mark.parametrize(
    ("number", "id"), [(errno.EROFS, "HOST.SYSTEM"), (errno.EACCES, "HOST.ROOT"), (errno.EPERM, "HOST.ROOT")]
)
def test_no_way_to_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, id: str
) -> None:
    def find(fleet: str) -> None:
        raise OSError(number, "no", "/some/file")

    monkeypatch.setattr(fleets, "find", find)
    error = said(capsys, "status")
    assert (error["error"], error["where"]) == (id, "/some/file")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("file", ["/some/file", None])
def test_full_disk_wherever_it_is_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, file: str | None
) -> None:
    def find(fleet: str) -> None:
        raise OSError(number, "no", file)

    monkeypatch.setattr(fleets, "find", find)
    error = said(capsys, "status")
    assert (error["error"], error["where"]) == ("HOST.DISK", file or "this machine")


def test_programs_that_tell_of_a_full_disk() -> None:
    assert disk.told("error: writing to file: No space left on device")
    assert disk.told("error: executing SQLite statement: database or disk is full")
    assert not disk.told("error: hash mismatch")


def test_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fleet.svg"
    output.write_file(file, "first")

    def no_room(self: Path, text: str, encoding: str) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "write_text", no_room)
        with pytest.raises(SparkserveError) as caught:
            output.write_file(file, "second")
    assert (caught.value.id, caught.value.where) == ("HOST.DISK", str(file))
    assert [each.read_text() for each in tmp_path.iterdir()] == ["first"]


def test_missing_folder_is_named_as_the_user_did(tmp_path: Path) -> None:
    file = tmp_path / "none/fleet.svg"
    with pytest.raises(SparkserveError) as caught:
        output.write_file(file, "text")
    assert (caught.value.id, caught.value.where) == ("CLI.USAGE", str(file))


def test_smoke_gives_its_answer_when_its_time_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process = procfs.find(os.getpid())
    assert process is not None
    run = engine_values.run(process).model_copy(update={"canary": Canary(at=0, seconds=1)})
    files = NodeFiles(checkout.state(), DEFAULT_FLEET, "spark-0")
    files.prepare()
    files.log.touch()
    files.save(run)

    def no_room(self: NodeFiles, run: Run) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(status, "state", lambda run: "ready")
    monkeypatch.setattr(smoke, "check", lambda *_: {"answer": "Paris", "seconds": 1.0})
    monkeypatch.setattr(NodeFiles, "save", no_room)
    with pytest.raises(SystemExit) as caught:
        main(["smoke", "--json"])
    out, err = capsys.readouterr()
    assert (caught.value.code, json.loads(out)["answer"]) == (0, "Paris")
    assert "No space left" in err
