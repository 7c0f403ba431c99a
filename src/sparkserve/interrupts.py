"""The signals that end a command: each becomes an exception, so that what runs is cleaned up."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# Ctrl-C, systemd and `timeout`, a terminal that closes, Ctrl-\.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(KeyboardInterrupt):
    """One of `STOPS` came. `exit_code` is what a shell reports for a program that the signal ends."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


def listen() -> None:
    """From now on raise `Interrupted` in the main thread for each of `STOPS` that is not ignored (nohup)."""
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def ignore() -> None:
    """From now on `STOPS` do nothing: Python is ending, and one more would change the exit code."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if number != signal.SIGINT:
        # A shell that goes with its terminal sends the kernel's SIGHUP again: not into the cleaning up.
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted(number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold `STOPS` back until the body is done, then raise `Interrupted`. Main thread only.

    Not by a signal mask: children inherit it, and the engine would never see SIGTERM.
    """
    seen: list[int] = []
    held = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN]
    old = [signal.signal(number, lambda got, _: seen.append(got)) for number in held]
    try:
        yield
    finally:
        for number, handler in zip(held, old, strict=True):
            signal.signal(number, handler)
    if seen:
        raise Interrupted(seen[0])
