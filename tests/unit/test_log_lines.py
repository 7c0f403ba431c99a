"""The lines of boot logs with their places: none twice, none lost, over new boots and lost connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sparkserve.group import boot_logs, log_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write(logs: Path, boot: int, text: str) -> Path:
    file = boot_logs.make(logs, boot) / "rank.log"
    file.write_bytes(text.encode())
    return file


def texts(logs: Path, count: int = 10, after: str = "") -> list[str]:
    return [text for _, text in log_lines.read(logs, count, after)]


def steps(*calls: Callable[[], object]) -> Callable[[], bool]:
    """Something happens whenever there is nothing new to read; then it ends."""
    left = list(calls)

    def ended() -> bool:
        if not left:
            return True
        left.pop(0)()
        return False

    return ended


def test_the_end_of_the_newest_boot(tmp_path: Path) -> None:
    write(tmp_path, 9, "old\n")
    write(tmp_path, 10, "a\nb\nc")
    assert texts(tmp_path, 2) == ["b", "c"]
    assert texts(tmp_path, 0) == []
    assert texts(tmp_path / "nothing") == []


def test_after_a_place_comes_what_is_new(tmp_path: Path) -> None:
    file = write(tmp_path, 3, "a\nb\n")
    places = [place for place, _ in log_lines.read(tmp_path, 10)]
    with file.open("a") as more:
        more.write("c\n")
    write(tmp_path, 4, "d\n")
    write(tmp_path, 5, "e\n")
    assert texts(tmp_path, after=places[0]) == ["b", "c", "== boot 4 ==", "d", "== boot 5 ==", "e"]
    assert texts(tmp_path, after=places[1]) == ["c", "== boot 4 ==", "d", "== boot 5 ==", "e"]


@pytest.mark.parametrize("after", ["", "2:0", "nonsense", "99999:5"])
def test_a_place_that_is_gone_is_no_error(tmp_path: Path, after: str) -> None:
    write(tmp_path, 7, "a\n")
    assert texts(tmp_path, after=after) == ["a"]


def test_a_file_that_lost_its_end_goes_on_there(tmp_path: Path) -> None:
    write(tmp_path, 7, "a\n")
    assert texts(tmp_path, after="7:1000") == []


def test_followed_over_half_lines_and_new_boots(tmp_path: Path) -> None:
    file = write(tmp_path, 1, "a\nhal")

    def add(text: str) -> Callable[[], object]:
        def call() -> None:
            with file.open("a") as more:
                more.write(text)

        return call

    ended = steps(add("f\nopen"), lambda: write(tmp_path, 2, "new\n"), lambda: None, lambda: None)
    found = list(log_lines.read(tmp_path, 10, ended=ended))
    assert [text for _, text in found] == ["a", "half", "open", "== boot 2 ==", "new"]
    assert [place for place, _ in found] == ["1:2", "1:7", "1:11", "2:0", "2:4"]


def test_what_a_boot_says_last_is_read_before_the_next(tmp_path: Path) -> None:
    file = write(tmp_path, 1, "a\n")

    def last_word_and_new_boot() -> None:
        with file.open("a") as more:
            more.write("last\n")
        write(tmp_path, 2, "new\n")

    ended = steps(last_word_and_new_boot, lambda: None, lambda: None)
    found = [text for _, text in log_lines.read(tmp_path, 10, ended=ended)]
    assert found == ["a", "last", "== boot 2 ==", "new"]


def test_following_waits_for_the_first_boot(tmp_path: Path) -> None:
    ended = steps(lambda: None, lambda: write(tmp_path, 1, "a\n"), lambda: None)
    found = [text for _, text in log_lines.read(tmp_path, 10, ended=ended)]
    assert found == ["== boot 1 ==", "a"]
