"""What a machine refuses is one paragraph with an exit code, wherever it happens."""

from __future__ import annotations

import errno
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from sparkserve.cli.main import main
from sparkserve.fleet import names
from sparkserve.local import single

if TYPE_CHECKING:
    from pathlib import Path


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
    def nodes(fleet: str) -> None:
        raise OSError(number, "no", "/some/file")

    monkeypatch.setattr(single, "nodes", nodes)
    error = said(capsys, "status")
    assert (error["error"], error["where"]) == (id, "/some/file")
