"""Activation on a folder of units, with systemd's answers made up."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - pytest reads the annotations of fixtures

import pytest

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.host.activate import activate

RANK, FRONT = "sparkserve-rank.service", "sparkserve-front.service"


class Systemd:
    """Shows the units as their links say, unless `stale`."""

    def __init__(self, units: Path) -> None:
        self.units, self.stale = units, ""
        self.calls: list[str] = []

    def __call__(self, *words: str) -> str:
        self.calls.append(words[0])
        if words[0] != "show":
            return ""
        link = self.units / words[-1]
        closure = link.resolve().parent.parent
        reload = "no" if "daemon-reload" in self.calls else "yes"
        reload = self.stale or ("no" if self.calls.count("show") == len(self.calls) else reload)
        return f"LoadState=loaded\nNeedDaemonReload={reload}\nExecStart={{ path={closure}/bin/sparkserve }}\n"


def closure(folder: Path, *names: str) -> Path:
    (folder / "units").mkdir(parents=True)
    for name in names:
        (folder / "units" / name).write_text("")
    return folder


def go(closure: Path, systemd: Systemd, tmp_path: Path) -> bool:
    return activate(closure, units=systemd.units, systemctl=systemd, runs=tmp_path / "rank.json")


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    (tmp_path / "system").mkdir()
    return Systemd(tmp_path / "system")


def test_links_once_and_for_the_next_closure(systemd: Systemd, tmp_path: Path) -> None:
    one, two = closure(tmp_path / "one", RANK, FRONT), closure(tmp_path / "two", RANK)
    assert go(one, systemd, tmp_path) is True
    assert (systemd.units / RANK).readlink() == one / "units" / RANK
    assert (systemd.units / "multi-user.target.wants" / FRONT).resolve() == one / "units" / FRONT
    assert systemd.calls == ["daemon-reload", "show", "show"]
    systemd.calls.clear()
    assert go(one, systemd, tmp_path) is False
    assert systemd.calls == ["show", "show"]
    assert go(two, systemd, tmp_path) is True
    assert sorted(each.name for each in systemd.units.iterdir()) == ["multi-user.target.wants", RANK]
    assert [each.name for each in (systemd.units / "multi-user.target.wants").iterdir()] == [RANK]


def test_refuses_while_an_engine_runs_unless_nothing_changes(systemd: Systemd, tmp_path: Path) -> None:
    one, two = closure(tmp_path / "one", RANK), closure(tmp_path / "two", RANK)
    go(one, systemd, tmp_path)
    run_files.note_engine(tmp_path / "rank.json", 1, procfs.find(os.getpid()))
    with pytest.raises(SparkserveError, match=f"found process {os.getpid()} runs") as caught:
        go(two, systemd, tmp_path)
    assert caught.value.id == "NODE.ACTIVATE"
    assert (systemd.units / RANK).resolve() == one / "units" / RANK
    systemd.calls.clear()
    assert go(one, systemd, tmp_path) is False
    run_files.note_engine(tmp_path / "rank.json", 1, None)
    assert go(two, systemd, tmp_path) is True


def test_what_systemd_does_not_show_is_an_error(systemd: Systemd, tmp_path: Path) -> None:
    systemd.stale = "yes"
    with pytest.raises(SparkserveError, match="NeedDaemonReload=yes"):
        go(closure(tmp_path / "one", RANK), systemd, tmp_path)


def test_a_dead_engine_is_no_engine(tmp_path: Path) -> None:
    file = tmp_path / "rank.json"
    assert run_files.engine(file) is None
    for text in ("{", "[]", '{"engine": {"pid": 1}}', '{"boot": 1, "engine": {"pid": 1, "start": 7}}'):
        file.write_text(text)
        assert run_files.engine(file) is None
