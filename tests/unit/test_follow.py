"""Several nodes' lines as one stream: every line once, whatever happens to connections."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from sparkserve import commands
from sparkserve.errors import SparkserveError
from sparkserve.reach import follow as following
from sparkserve.runner import Recorded

if TYPE_CHECKING:
    from collections.abc import Generator

    from sparkserve.commands import Command


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RETRY_S", 0.01)


def lost(node: str) -> SparkserveError:
    return SparkserveError("NODE.UNREACHABLE", expected="a login", found="no route", where=node, do="Look.")


class Breaks(Recorded):
    """Each connection gives two lines and breaks; those in `away` are refused so many times first."""

    def __init__(self, end: int, away: dict[str, int]) -> None:
        super().__init__()
        self.end, self.away = end, away
        self.closed = threading.Event()

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        self.asked.append((node, command.line()))
        if self.away.get(node, 0) > 0:
            self.away[node] -= 1
            raise lost(node)
        begin = int(command.argv[-1]) if command.argv[-2] == "--after" else 0
        for number in range(begin + 1, min(begin + 3, self.end + 1)):
            yield json.dumps({"__CURSOR": str(number), "MESSAGE": f"line {number}"})
        if begin >= self.end:
            self.closed.wait(10)  # nothing new
        raise lost(node)

    def close(self) -> None:
        self.closed.set()


def test_every_line_once_over_broken_connections(capsys: pytest.CaptureFixture[str]) -> None:
    runner = Breaks(5, {"b": 3})
    found: list[tuple[str, str]] = []
    stream = following.follow(
        runner, ["a", "b"], lambda place: commands.boot_log(5, after=place), lambda: len(found) == 10
    )
    for each in stream:
        found.append(each)
    for node in ("a", "b"):
        assert [line for name, line in found if name == node] == [f"line {n}" for n in range(1, 6)]
    assert runner.of("a")[:2] == [commands.boot_log(5).line(), commands.boot_log(5, after="2").line()]
    assert threading.active_count() == 1
    assert capsys.readouterr().err.count("b: no route; waiting for it.") <= 4  # not once a try


def test_what_keeps_a_node_away_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    runner = Breaks(0, {"b": 10})
    ended = iter(lambda: runner.away["b"] == 0, None)
    list(following.follow(runner, ["b"], lambda place: commands.boot_log(5), lambda: next(ended)))
    assert capsys.readouterr().err == "b: no route; waiting for it.\n"


def test_the_end_of_the_reader_ends_the_commands() -> None:
    runner = Breaks(2, {})
    stream = following.follow(runner, ["a", "b", "c"], lambda place: commands.boot_log(5), lambda: False)
    next(stream)
    stream.close()
    assert runner.closed.is_set()
    assert threading.active_count() == 1


@pytest.mark.parametrize(
    ("message", "text"), [("a", "a"), ([97, 255], "a\N{REPLACEMENT CHARACTER}"), (None, "")]
)
def test_entries_as_journalctl_writes_them(message: object, text: str) -> None:
    assert following.entry(json.dumps({"__CURSOR": "s=1", "MESSAGE": message})) == ("s=1", text)
