"""What `deploy --resume` prints, and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from deploy_node import plan

from sparkserve.cli.main import main
from sparkserve.deploy import deployer
from sparkserve.deploy.resume import Ended

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(("trouble", "code"), [("", 0), ("rank 1 died", 55)])
def test_a_group_that_does_not_run_is_no_success(
    trouble: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = plan(None, "/nix/store/two")
    ended: list[Any] = [Ended(made, "undo"), Ended(made, "keep", trouble)]

    def resumed(fleet: str, tell: Callable[[Ended], None]) -> list[Ended]:
        for each in ended:
            tell(each)
        return ended

    monkeypatch.setattr(deployer, "resume", resumed)
    for words in (["deploy", "--resume"], ["deploy", "--resume", "--json"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == code
        out, err = capsys.readouterr()
        if "--json" in words:
            assert [each["trouble"] for each in json.loads(out)] == ["", trouble]
        assert f"{made.id} is kept" in err and trouble in err


@pytest.mark.parametrize(
    "words", [["rollback"], ["promote", "r7", "--why", "x"], ["generations", "gc"], ["diff", "HEAD", "."]]
)
def test_what_is_no_name_becomes_no_path(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path / "checkout"))
    (tmp_path / "checkout/hosts").mkdir(parents=True)
    with pytest.raises(SystemExit) as caught:
        main([*words, "--fleet", "../../../other"])
    assert caught.value.code == 33
    assert "FLEET.NAME" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["checkout"]
