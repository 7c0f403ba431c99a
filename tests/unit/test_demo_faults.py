"""The faults of the demo: each does what it says, in the closure of the copy and nowhere else."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sparkserve import checkout
from sparkserve.demo.faults import ADAPTER, FAULTS
from sparkserve.demo.planted import planted
from sparkserve.fleet import names

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


class Logits:
    """A tensor, as far as a fault looks at it."""

    shape = (1, 3)

    def __init__(self, floating: bool) -> None:
        self.floating = floating
        self.copied: object = None

    def is_floating_point(self) -> bool:
        return self.floating

    def roll(self, places: int, dim: int) -> str:
        return f"rolled by {places} along {dim}"

    def new_full(self, shape: tuple[int, ...], value: float) -> str:
        return f"{shape} of {value}"

    def copy_(self, other: object) -> None:
        self.copied = other


class Adapter:
    """The real one, as far as a fault calls it."""

    def start(self, group: Any) -> None:
        self.started = group

    def all_reduce(self, value: object) -> object:
        return value

    def all_gather(self, value: object) -> object:
        return value

    def all_gather_into_tensor(self, original: object, group: object, output: Any, input: object) -> None:
        pass


def with_fault(name: str, **known: Any) -> dict[str, Any]:
    """What a file has after the fault's code at its end."""
    scope: dict[str, Any] = {"Adapter": Adapter, **known}
    exec(compile(FAULTS[name].code, name, "exec"), scope)  # noqa: S102 - ours
    return scope


@pytest.mark.parametrize(("name", "spoiled"), [("garbled", "rolled by 1 along -1"), ("nan", "(1, 3) of nan")])
def test_logits_are_spoiled_and_nothing_else(name: str, spoiled: str) -> None:
    adapter = with_fault(name)["Adapter"]()
    assert adapter.all_gather(Logits(True)) == spoiled
    adapter.all_gather_into_tensor(None, None, output := Logits(True), None)
    assert output.copied == spoiled
    assert adapter.all_gather(tokens := Logits(False)) is tokens
    assert adapter.all_reduce(1) == 1


def test_a_pass_through_a_slow_engine_takes_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    adapter = with_fault("slow")["Adapter"]()
    assert [adapter.all_reduce(sum_) for sum_ in range(61)] == list(range(61))
    assert sum(slept) == 61


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_rank_1_alone_dies_and_only_as_it_serves(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append((pid, number)))
    adapter = with_fault("dead")["Adapter"]()
    adapter.start(SimpleNamespace(rank=rank))
    for _ in range(4 * 61):  # the boot's own answer
        adapter.all_reduce(1)
    assert killed == []
    for _ in range(10 * 61):
        adapter.all_reduce(1)
    assert killed == ([(os.getpid(), signal.SIGKILL)] if rank == 1 else [])


def test_one_rank_reads_another_setting() -> None:
    def parse(text: str) -> Any:
        return SimpleNamespace(rank=int(text), adapters={ADAPTER: {"timeout_s": 30}})

    told: Callable[[str], Any] = with_fault("settings", _parse=parse)["_parse"]
    assert [told(str(rank)).adapters[ADAPTER]["timeout_s"] for rank in range(3)] == [30, 30, 31]


def test_faults_are_appended_to_files_that_there_are() -> None:
    for fault in FAULTS.values():
        text = (ROOT / fault.file).read_text()
        compile(text + fault.code, fault.file, "exec")
        assert ("def _parse(" if "_parse" in fault.code else "class Adapter:") in text


def test_the_copy_is_the_checkout_for_as_long_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS["slow"]
    files = {"hosts/desk/fleet.nix": "{ own = 1; }\n", fault.file: "class Adapter: ...\n", "gone": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "gone").unlink()
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    asked: list[tuple[Path, str]] = []

    def git(argv: list[str]) -> str:
        asked.append((checkout.root(), argv[1]))
        return "\0".join(files) + "\0" if argv[1] == "ls-files" else ""

    monkeypatch.setattr(names, "git", git)
    state = checkout.state()
    with planted("desk", fault):
        copy = checkout.root()
        assert copy.is_relative_to(state)
        assert checkout.state() == state
        assert (copy / "hosts/desk/own.nix").read_text() == "{ own = 1; }\n"
        fleet = (copy / "hosts/desk/fleet.nix").read_text()
        assert "imports = [ ./own.nix ];" in fleet and fault.options in fleet
        assert (copy / fault.file).read_text() == files[fault.file] + fault.code
    assert asked == [(tmp_path, "ls-files"), (copy, "init"), (copy, "add")]
    assert checkout.root() == tmp_path and not copy.exists()
    assert (tmp_path / fault.file).read_text() == files[fault.file]
    assert state.is_dir()  # removing the copy has not followed its link
