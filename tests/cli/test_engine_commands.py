"""What the engine commands say when there is nothing to command, or no way to start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkserve import plan
from sparkserve.cli.main import main
from sparkserve.fleet import plans

GOLDEN = Path(__file__).parents[1] / "golden"
COMMANDS = ("up", "down", "status", "logs", "smoke")


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts/local-single").mkdir(parents=True)
    (tmp_path / "hosts/local-single/fleet.nix").write_text("{ }")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setenv("SPARKSERVE_FLEET", "local-single")
    return tmp_path


@pytest.fixture
def _planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nix gives its plan: what does not run here could be on Sparks."""
    single = plan.load(GOLDEN / "local-single/spark-0.json")
    monkeypatch.setattr(plans, "load", lambda name: [single])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"./sparkserve {name}" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_fleet(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, _, err = run(capsys, name, "--fleet", "local-singel")
    assert code == 33
    assert "local-single" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_path_as_fleet(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(capsys, name, "--fleet", "../../etc")[0] == 33


@pytest.mark.usefixtures("_planned")
def test_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "down")[0] == 0
    assert run(capsys, "logs")[0] == 52
    assert run(capsys, "smoke")[0] == 52
    code, out, err = run(capsys, "status")
    assert (code, out) == (52, "")
    assert "./sparkserve up" in err
    code, out, _ = run(capsys, "status", "--json")
    assert (code, json.loads(out)) == (52, {"fleet": "local-single", "nodes": []})


@pytest.mark.usefixtures("_planned")
def test_advice_is_about_the_fleet_that_was_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARKSERVE_FLEET")
    _, _, err = run(capsys, "status", "--fleet", "local-single")
    assert err == (
        "local-single was not brought up on this machine yet. "
        "Start it with: ./sparkserve up --fleet local-single.\n"
    )
    for name in ("smoke", "logs"):
        assert "./sparkserve up --fleet local-single." in run(capsys, name, "--fleet", "local-single")[2]
