"""The access log: one JSON object a line, a request each. Never a query string, a header or a body."""

from __future__ import annotations

import json
import queue
import sys
import threading
from typing import Any

_WAITING = 10_000  # lines; what a log that takes nothing may cost us in memory


class AccessLog:
    """Writes to stdout from a thread of its own: a reader that stops must not stop the requests too."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._write, name="access-log", daemon=True)
        self._thread.start()
        self.dropped = 0

    def line(self, **values: Any) -> None:
        """Log one request. Dropped, and counted, when the reader is far behind."""
        try:
            self._lines.put_nowait(json.dumps(values, separators=(",", ":")) + "\n")
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Give the last lines a second to get out."""
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(1.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                sys.stdout.write(line)
                sys.stdout.flush()
            except OSError:
                return
