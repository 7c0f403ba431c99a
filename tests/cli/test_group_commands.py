"""`status`, `logs` and `smoke` print what a fleet says of itself, whatever kind it is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparkserve import api_key
from sparkserve.cli.main import main
from sparkserve.engine import smoke
from sparkserve.group import boot_logs, run_files
from sparkserve.local import fleets
from sparkserve.reach import there

if TYPE_CHECKING:
    from collections.abc import Generator

READY = {
    **{"node": "spark-0", "state": "ready", "reason": "", "boot": 4, "pid": 101, "pss_bytes": 912_345_678},
    **{"phase": "ready", "phase_s": 9.0, "fleet_id": "f" * 64, "canary_age_s": 0.5, "uptime_s": 61.0},
    **{"endpoint": "http://127.0.0.1:8888", "model": "m"},
}
NOTHING = dict.fromkeys(("boot", "pid", "pss_bytes", "phase", "phase_s", "fleet_id", "uptime_s"))
DOWN = {**READY, **NOTHING, "state": "down", "reason": "rank 2 (spark-2): its connection was lost"}


class Fake:
    name = "local-triangle"

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.asked: dict[str, Any] = {}

    def take_down(self) -> bool:
        return True

    def report(self) -> list[dict[str, Any]]:
        return self.rows

    def advice(self, state: str) -> str:
        return fleets.advice(state, self.name)

    def serving(self) -> there.Serving:
        return there.Serving("silent", "no token for 12 s", "http://127.0.0.1:8888", "m")

    def logs(self, lines: int, **asked: Any) -> Generator[str, None, None]:
        self.asked = {"lines": lines, **asked}
        yield "spark-0 | a"
        yield "spark-1 | b"


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fake: Fake, *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(fleets, "find", lambda fleet: fake)
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


def test_status_of_a_group(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    guard = {"available_kib": 8 << 20, "low_water_engine_kib": 7 << 20, "low_water_kib": 6 << 20}
    code, out, err = run(capsys, monkeypatch, Fake([{**READY, "guard": guard}]), "status")
    assert (code, err) == (0, "")
    assert out.splitlines()[1].split() == [
        *["spark-0", "ready", "4", "101", "61", "s", "912", "MB"],
        *["8.0", "(7.0)", "GiB", "0", "s", "ago", "f" * 12],
        "http://127.0.0.1:8888",
    ]


def test_status_says_what_is_missing_and_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    off = {**READY, **NOTHING, "node": "spark-2", "state": "off"}
    starting = {**READY, "node": "spark-1", "state": "starting", "phase": "loading weights", "phase_s": 12.0}
    fake = Fake([DOWN, starting, off])
    code, out, err = run(capsys, monkeypatch, fake, "status")
    assert code == 52
    assert "spark-1  starting (loading weights, 12 s)" in out
    assert err.splitlines() == [
        f"spark-0: rank 2 (spark-2): its connection was lost. {fleets.ADVICE['down']}",
        f"spark-1: {fleets.ADVICE['starting']}",
        f"spark-2: {fleets.ADVICE['off']}",
    ]
    code, out, _ = run(capsys, monkeypatch, fake, "status", "--json")
    assert (code, json.loads(out)["nodes"]) == (52, fake.rows)


def test_what_is_said_of_all_nodes_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake([DOWN, {**DOWN, "node": "spark-1"}])
    _, _, err = run(capsys, monkeypatch, fake, "status")
    assert err.count("its connection was lost") == 1
    assert err.startswith("spark-0, spark-1: ")


def test_logs_passes_on_what_was_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake([])
    code, out, _ = run(capsys, monkeypatch, fake, "logs", "-f", "-n", "3", "--node", "x", "--part", "front")
    assert (code, out) == (0, "spark-0 | a\nspark-1 | b\n")
    assert fake.asked == {"lines": 3, "follow": True, "node": "x", "part": "front"}
    assert run(capsys, monkeypatch, fake, "logs", "--part", "body")[0] == 2


def test_smoke_says_why_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, monkeypatch, Fake([]), "smoke")
    assert code == 52
    assert "found it is silent: no token for 12 s" in err


@pytest.mark.parametrize(
    ("words", "key_file"), [((), "/etc/planned"), (("--api-key-file", "/etc/own"), "/etc/own")]
)
def test_smoke_shows_the_key_of_the_plan_unless_another_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], key_file: str
) -> None:
    ready = there.Serving("ready", "", "http://127.0.0.1:8888", "m", key_file=Path("/etc/planned"))
    fake, shown = Fake([]), list[Path]()
    monkeypatch.setattr(fake, "serving", lambda: ready)

    def check(endpoint: str, model: str, file: Path) -> None:
        shown.append(file)
        raise api_key.refused(endpoint)

    monkeypatch.setattr(smoke, "check", check)
    code, _, err = run(capsys, monkeypatch, fake, "smoke", *words)
    assert (code, shown) == (101, [Path(key_file)])
    assert "KEY.REFUSED" in err


def test_a_node_prints_its_log_as_journalctl_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (boot_logs.make(tmp_path, 3) / "rank.log").write_text("a\nb\n")
    monkeypatch.setattr(run_files, "LOGS", tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["rank", "log", "--lines", "1"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out) == {"__CURSOR": "3:4", "MESSAGE": "b"}
