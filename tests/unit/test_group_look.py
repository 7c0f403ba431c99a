"""What a node says about itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from group_values import free_ports, plan

from sparkserve.engine import procfs
from sparkserve.group import look as looks
from sparkserve.group import run_files

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def said(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    """What systemd says here."""
    answers = {"systemctl": unit, "journalctl": "Boot 4 ends\nMain process exited, status=9/KILL"}
    monkeypatch.setattr(looks, "_output", lambda *argv: answers[argv[0]])


def test_an_engine_with_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, "active")
    rank = tmp_path / "rank.json"
    me = procfs.find(os.getpid())
    run_files.note_engine(rank, 4, me)
    found = looks.look(plan(1, free_ports()), rank)
    assert (found.node, found.boot, found.pid, found.said) == ("spark-1", 4, os.getpid(), "")
    assert (found.pss_bytes or 0) > 1_000_000
    run_files.note_engine(rank, 4, procfs.Process(os.getpid(), 1))  # another one had the pid
    found = looks.look(plan(1, free_ports()), rank)
    assert (found.boot, found.pid, found.pss_bytes) == (4, None, None)


def test_a_supervisor_that_ended_has_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, "failed")
    found = looks.look(plan(0, free_ports()), tmp_path / "none")
    assert (found.unit, found.said) == ("failed", "Boot 4 ends; Main process exited, status=9/KILL")
    assert (found.boot, found.pid, found.group) == (None, None, None)


def test_a_head_whose_controller_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, "active")
    assert looks.look(plan(0, free_ports()), tmp_path / "none").group is None
