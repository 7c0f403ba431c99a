"""What systemd is told."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from sparkserve import notify

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_words_for_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify.ready()  # nobody listens
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(5)
        systemd.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        notify.ready()
        notify.alive()
        assert [systemd.recv(100), systemd.recv(100)] == [b"READY=1", b"WATCHDOG=1"]
    (tmp_path / "notify").unlink()
    notify.alive()  # one that is gone stops nothing
