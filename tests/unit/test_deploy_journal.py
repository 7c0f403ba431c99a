"""What a deployment's journal says after power cuts, full disks, kills and edits by hand."""

from __future__ import annotations

import errno
import itertools
import os
from typing import TYPE_CHECKING

import power_cuts
import pytest

from sparkserve.deploy.files import Files
from sparkserve.deploy.journal import Journal, Record, journals
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

ID = "0123456789ab"
# Of the lengths that a power cut may find: shorter than what was torn before it, and longer.
STEPS = (
    Record(kind="begun", data={"by": "é\r\n\u2028"}),
    Record(kind="a", data={}),
    Record(kind="b", data={"x": "y" * 40}),
)


def append(journal: Journal, record: Record) -> None:
    journal.append(record.kind, **record.data)


def said(folder: Path) -> list[Record]:
    """The records of the only journal; none when it never began."""
    found = journals(folder, power_cuts.Recording())
    assert len(found) < 2
    return list(found[0].records) if found else []


def test_said_again(tmp_path: Path) -> None:
    """What is appended is read in order, and the journals in the order in which they began."""
    folder = tmp_path / "deep/journal"
    assert journals(folder) == []
    first = Journal.create(folder, ID)
    assert not folder.exists()
    for record in STEPS:
        append(first, record)
    second = Journal.create(folder, "b" * 12)
    append(second, STEPS[0])
    found = journals(folder)
    assert [(each.number, each.id, each.records) for each in found] == [
        (1, ID, STEPS),
        (2, "b" * 12, STEPS[:1]),
    ]
    append(found[1], STEPS[1])
    assert journals(folder)[1].records == STEPS[:2]


def check_every_cut(
    folder: Path, files: power_cuts.Recording, before: power_cuts.Tree, known: int, done: list[int]
) -> int:
    """Cut the power after every call of the trace, in every way; how many ways.

    `known` records were there before; the next ones had been acknowledged after `done` calls.
    """
    ways = 0
    for calls in range(len(files.trace) + 1):
        acknowledged = known + sum(number <= calls for number in done)
        begun = known + sum(number < calls for number in [0, *done][: len(done)])
        for tree in power_cuts.outcomes(files.trace[:calls], before):
            ways += 1
            power_cuts.write(folder, tree)
            there = said(folder)
            assert there == list(STEPS[: len(there)])
            assert acknowledged <= len(there) <= begun, (calls, tree)
            # It goes on from there.
            if there and len(there) < len(STEPS):
                append(journals(folder, power_cuts.Recording())[0], STEPS[len(there)])
                assert said(folder) == list(STEPS[: len(there) + 1])
    return ways


def test_every_power_cut(tmp_path: Path) -> None:
    """No prefix of the trace, whatever it loses of what was not synced, loses or invents a record."""
    files = power_cuts.Recording()
    journal = Journal.create(tmp_path, ID, files)
    done = []
    for record in STEPS:
        append(journal, record)
        done.append(len(files.trace))
    assert check_every_cut(tmp_path, files, {}, 0, done) > 200


def test_every_power_cut_after_a_power_cut(tmp_path: Path) -> None:
    """The same where the first cut has left a torn line, of each length and with each hole."""
    first = power_cuts.Recording()
    journal = Journal.create(tmp_path, ID, first)
    append(journal, STEPS[0])
    synced = len(first.trace)
    append(journal, STEPS[2])  # longer than the record that takes its place
    ways = 0
    for before in list(power_cuts.outcomes(first.trace[: synced + 1])):
        power_cuts.write(tmp_path, before)
        files = power_cuts.Recording()
        found = journals(tmp_path, files)[0]
        if len(found.records) == 1:
            append(found, STEPS[1])
            ways += check_every_cut(tmp_path, files, before, 1, [len(files.trace)])
    assert ways > 2000


def test_what_was_read_is_not_lost(tmp_path: Path) -> None:
    """A writer that is killed before its sync leaves a record that others see: then it is on the disk."""
    for kill in range(4):

        def before(number: int, kill: int = kill) -> None:
            if number == kill:
                raise KeyboardInterrupt

        folder = tmp_path / str(kill)
        files = power_cuts.Recording(before)
        with pytest.raises(KeyboardInterrupt):
            append(Journal.create(folder, ID, files), STEPS[0])
        reader = power_cuts.Recording()
        seen = [list(each.records) for each in journals(folder, reader)]
        left = [*files.trace, *reader.trace]
        for tree in power_cuts.outcomes(left):
            power_cuts.write(folder, tree)
            assert not seen or said(folder) == seen[0]
        assert seen == ([[STEPS[0]]] if kill >= 2 else [])


class Full(Files):
    """A disk that has no more room at the call `at`, after a part of what was to be written."""

    def __init__(self, at: str, code: int = errno.ENOSPC) -> None:
        self.at = at
        self.code = code

    def create(self, path: Path) -> None:
        if self.at == "create":
            raise OSError(self.code, os.strerror(self.code), str(path))
        super().create(path)

    def write(self, path: Path, at: int, data: bytes) -> None:
        if self.at == "write":
            super().write(path, at, data[: len(data) // 2])
            raise OSError(self.code, os.strerror(self.code))
        super().write(path, at, data)

    def sync(self, path: Path) -> None:
        if self.at == "sync":
            self.at = ""
            raise OSError(self.code, os.strerror(self.code))
        super().sync(path)


@pytest.mark.parametrize("at", ["create", "write", "sync"])
def test_full_disk(tmp_path: Path, at: str) -> None:
    """The journal is as before, the error says so, and with room again it goes on."""
    with pytest.raises(SparkserveError) as raised:
        append(Journal.create(tmp_path, ID, Full(at)), STEPS[0])
    assert raised.value.id == "HOST.DISK" and ID in raised.value.where
    assert list(tmp_path.iterdir()) == []
    append(Journal.create(tmp_path, ID), STEPS[0])
    before = power_cuts.read(tmp_path)
    if at != "create":
        full = Full("")
        journal = journals(tmp_path, full)[0]
        full.at = at
        with pytest.raises(SparkserveError) as raised:
            append(journal, STEPS[1])
        assert raised.value.id == "HOST.DISK"
        assert power_cuts.read(tmp_path) == before
        full.at = ""
        append(journal, STEPS[1])
        assert said(tmp_path) == list(STEPS[:2])


def test_failing_disk(tmp_path: Path) -> None:
    """What the disk may not have is not read as written."""
    append(Journal.create(tmp_path, ID), STEPS[0])
    journal = journals(tmp_path, full := Full(""))[0]
    full.at, full.code = "sync", errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        append(journal, STEPS[1])
    assert said(tmp_path) == [STEPS[0]]


def test_every_edit_is_noticed(tmp_path: Path) -> None:
    """No changed or missing byte of a whole line is passed over, also before a torn one."""
    journal = Journal.create(tmp_path, ID)
    for record in STEPS:
        append(journal, record)
    data = journal.path.read_bytes()
    for at, torn in itertools.product(range(len(data) - 1), (b"", b'0123abcd {"da')):
        for edited in (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], data[:at] + data[at + 1 :]):
            journal.path.write_bytes(edited + torn)
            with pytest.raises(SparkserveError) as raised:
                journals(tmp_path, power_cuts.Recording())
            assert raised.value.id == "DEPLOY.JOURNAL"
            assert str(journal.path) in raised.value.where


def test_another_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(SparkserveError) as raised:
        journals(tmp_path)
    assert raised.value.id == "DEPLOY.JOURNAL" and "notes.txt" in raised.value.where


def test_two_writers(tmp_path: Path) -> None:
    """Who has read the journal before another added to it takes nothing away."""
    first = Journal.create(tmp_path, ID)
    append(first, STEPS[0])
    append(journals(tmp_path)[0], STEPS[1])
    with pytest.raises(SparkserveError) as raised:
        append(first, STEPS[2])
    assert raised.value.id == "DEPLOY.FENCED"
    assert said(tmp_path) == list(STEPS[:2])
