"""A suite's command, from a shell that ignores Ctrl-C in the background."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from sparkserve.checks import _command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_ctrl_c_counts_in_a_background_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        script = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('lives on')"
        code, lines = _command.run("probe", [sys.executable, "-c", script], env=os.environ, detail=print)
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in lines
