"""The structured lines by which adapters tell the launcher what happened, and how they end a process."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sparkserve.adapters.contract import Event

PREFIX = "sparkserve-adapter "
# Exit codes of the process that ends itself. SGLang's launcher may hide them behind its own: the line counts.
EXIT = {"refused": 78, "failed": 79}


def line(event: Event, **fields: Any) -> None:
    """Write one line to stderr: in one piece and at once, whatever the state of Python's own files."""
    value = json.dumps({"event": event, "pid": os.getpid(), **fields}, sort_keys=True)
    os.write(2, f"{PREFIX}{value}\n".encode())


def end(event: Event, **fields: Any) -> NoReturn:
    """Write the line and end this process, and the engine of this node with it.

    Not by an exception: SGLang only logs a plugin that raises, and goes on without it.
    """
    line(event, **fields)
    if multiprocessing.parent_process() is not None:
        # The launcher of this node ends all it started; it would notice by itself after a second.
        os.kill(os.getppid(), signal.SIGQUIT)
    os._exit(EXIT[event])
