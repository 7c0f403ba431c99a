"""Runs a suite's command with its output in a log and its last lines on the screen."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from sparkserve import checkout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def run(
    name: str, argv: Sequence[str], *, env: Mapping[str, str], detail: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run `argv` in the checkout; return its exit code and all lines it printed.

    The lines also go to `.sparkserve/check/<name>.log` as they come. Interrupted, it interrupts the command,
    which then cleans up, and waits for it.
    """
    log = checkout.state() / "check" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    lines: list[str] = []
    with log.open("w") as file:
        process = subprocess.Popen(
            argv,
            cwd=checkout.root(),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A script's background job ignores SIGINT, and so would the command and all that it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert process.stdout is not None  # noqa: S101 - for mypy
        try:
            for line in process.stdout:
                file.write(line)
                file.flush()
                lines.append(line.rstrip())
                if line.strip():
                    detail(line.strip()[:90])
            return process.wait(), lines
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()  # not wait: what it still prints must not block it
            raise
