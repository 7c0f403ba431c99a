"""What a node says of itself, and that it says nothing when it does not know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from metrics_node import HEAD, Files

from sparkserve.metrics.families import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def names(found: dict[str, float]) -> set[str]:
    return {name.partition("{")[0] for name in found}


def test_a_head_that_serves(files: Files) -> None:
    found = files.read()
    of_gpu = {name for name in FAMILIES if name.startswith("sparkserve_gpu_")}
    assert names(found) == set(FAMILIES) - of_gpu
    (info,) = [name for name in found if name.startswith("sparkserve_info{")]
    assert f'fleet_id="{"0" * 64}"' in info and 'rank="0"' in info and 'closure="/nix/store/host"' in info
    assert found["sparkserve_generation"] == 12
    assert (found["sparkserve_rank_up"], found["sparkserve_rank_boot"]) == (1, 7)
    assert found['sparkserve_adapter_info{adapter="oneshot-collectives",digest="abc"}'] == 1
    assert found["sparkserve_memory_available_bytes"] == 12 << 30
    assert found["sparkserve_guard_line_bytes"] == 3472 << 20
    assert found["sparkserve_guard_low_water_bytes"] == 7 << 30
    assert found["sparkserve_guard_engine_low_water_bytes"] == 8 << 30
    assert found["sparkserve_guard_kills_total"] == 1
    assert found['sparkserve_guard_phase{phase="steady"}'] == 1
    assert found['sparkserve_guard_phase{phase="startup"}'] == 0
    assert found['sparkserve_group_state{state="up"}'] == 1
    assert found["sparkserve_group_boots_total"] == 7
    assert found['sparkserve_front_verdict{verdict="ok"}'] == 1
    assert 1.5 <= found["sparkserve_token_age_seconds"] < 6.5
    assert 4 <= found["sparkserve_canary_age_seconds"] < 9
    assert found['sparkserve_requests_total{end="refused"}'] == 3


def test_nothing_is_there_yet(files: Files) -> None:
    for file in [*files.places.run.iterdir(), *files.places.state.iterdir()]:
        file.unlink()
    files.places.profile.unlink()
    files.places.meminfo.unlink()
    found = files.read()
    # No file is no guard, no front and no engine. All else is not known.
    assert {name: value for name, value in found.items() if value == 0} == {
        "sparkserve_guard_up": 0,
        "sparkserve_front_up": 0,
        "sparkserve_rank_up": 0,
    }
    assert names(found) - {name.partition("{")[0] for name, value in found.items() if value == 0} == {
        "sparkserve_info",
        "sparkserve_link_carrier",
        "sparkserve_lost_seconds",
    }


@pytest.mark.parametrize("name", ["rank", "guard", "group", "front"])
@pytest.mark.parametrize("part", [0, 1, 0.5])
def test_a_torn_file_says_nothing(files: Files, name: str, part: float) -> None:
    whole = files.read()
    file = files.places.run / f"{name}.json"
    text = file.read_text()
    file.write_text(text[: int(part * (len(text) - 3))])
    found = files.read()
    gone = names(whole) - names(found)
    assert gone and all(
        each.startswith(("sparkserve_adapter", f"sparkserve_{name}_", *OF[name])) for each in gone
    )
    # What is still said is what was said, or that its writer says nothing.
    for each in found:
        if each == f"sparkserve_{name}_up":
            assert found[each] == 0
        elif "_age_" not in each:
            assert found[each] == whole[each]


OF = {
    "rank": [],
    "guard": [],
    "group": [],
    "front": ["sparkserve_token_", "sparkserve_canary_", "sparkserve_requests_"],
}


def test_the_controllers_memory_is_torn(files: Files) -> None:
    (files.places.state / "group.json").write_text('{"wanted": tr')
    found = names(files.read())
    assert "sparkserve_group_wanted" not in found and "sparkserve_group_boots_total" not in found
    assert "sparkserve_group_state" in found


@pytest.mark.parametrize("age_s", [6.0, -3600.0])
def test_what_an_old_front_said_is_not_repeated(files: Files, age_s: float) -> None:
    files.front(age_s)
    found = files.read()
    assert found["sparkserve_front_up"] == 0
    said = ("sparkserve_front_verdict", "sparkserve_token_age_seconds", "sparkserve_requests_total")
    assert not names(found) & set(said)


def test_what_an_old_guard_said_is_not_repeated(files: Files) -> None:
    files.guard(11)
    found = files.read()
    assert {name for name in found if name.startswith("sparkserve_guard_")} == {"sparkserve_guard_up"}
    assert found["sparkserve_guard_up"] == 0


def test_half_a_write_of_the_guard(files: Files) -> None:
    files.guard(end=8)
    assert {name for name in files.read() if name.startswith("sparkserve_guard_")} == {"sparkserve_guard_up"}


def test_an_engine_that_is_gone(files: Files) -> None:
    files.rank(pid=1 << 22)
    found = files.read()
    assert found["sparkserve_rank_up"] == 0 and found["sparkserve_rank_boot"] == 7
    assert "sparkserve_adapter_info" not in names(found)


def test_a_start_says_its_phase(files: Files) -> None:
    files.group("starting", "loading weights")
    assert files.read()['sparkserve_group_info{boot="7-00c0ffee",phase="loading weights"}'] == 1
    files.group("down", 'rank 1 (spark-1): its engine ended: what [came] "of" it\n')
    assert files.read()['sparkserve_group_info{boot="7-00c0ffee",phase=""}'] == 1


def test_no_token_yet(files: Files) -> None:
    files.front(last_token_age_s=None, verdict="proving")
    found = files.read()
    assert "sparkserve_token_age_seconds" not in found
    assert found['sparkserve_front_verdict{verdict="proving"}'] == 1


def test_a_cable_is_cut(files: Files) -> None:
    assert HEAD.fabric is not None
    first, second = HEAD.fabric.links[:2]
    (files.places.net / first.interface / "carrier").write_text("0\n")
    (files.places.net / second.interface / "carrier").unlink()  # down, or not there
    found = files.read()
    down = [name for name, value in found.items() if name.startswith("sparkserve_link") and value == 0]
    assert len(down) == 2 and first.interface in down[0] + down[1] and second.interface in down[0] + down[1]


def test_memory_as_the_kernel_spells_it(files: Files) -> None:
    files.places.meminfo.write_text("MemTotal:\nMemAvailable: many kB\n")
    assert not [name for name in files.read() if name.startswith("sparkserve_memory")]


def test_a_worker_says_nothing_of_the_group(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    from fabric_host import golden

    monkeypatch.setattr("metrics_node.HEAD", golden("tp3-triangle")[1])
    found = names(files.read())
    assert not [name for name in found if name.startswith(("sparkserve_group", "sparkserve_front"))]
    assert "sparkserve_rank_up" in found


def test_the_supervisor_notes_what_is_armed(files: Files) -> None:
    from sparkserve.group import run_files

    file = files.places.run / "rank.json"
    assert run_files.armed(file) == {"oneshot-collectives": "abc"}
    for damaged in ("", "[]", '{"armed": 3}', json.dumps({"boot": 3, "engine": None})):
        file.write_text(damaged)
        assert run_files.armed(file) == {}
