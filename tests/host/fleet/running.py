"""A command of the checkout's copy that runs beside the test."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

from group_fleet import FLEET

from sparkserve.engine import procfs

if TYPE_CHECKING:
    from engine_copy import Copy

SERVED_S = 600.0


class Running:
    """A command for the fleet, and what it has said so far."""

    def __init__(self, copy: Copy, *arguments: str) -> None:
        self.child = copy.start(*arguments, "--fleet", FLEET)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stderr is not None
        self.lines.extend(self.child.stderr)

    def said(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def runs(self, words: str) -> bool:
        """Whether it has a child with these words in its command line."""
        return any(words in procfs.command_line(pid) for pid in procfs.tree(self.child.pid))

    def end(self, seconds: float = SERVED_S) -> tuple[int, str]:
        """Its exit code and stdout, once it has ended."""
        assert self.child.stdout is not None
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise AssertionError(f"{self.child.args!r} not ended in {seconds:.0f} s: {self.lines}") from None
        self._reader.join()
        with self.child.stdout as out:
            return self.child.returncode, out.read()
