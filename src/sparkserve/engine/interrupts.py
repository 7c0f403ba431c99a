"""Holds Ctrl-C back for the moments in which a process exists that no record names."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the body is done, then raise KeyboardInterrupt. Main thread only.

    Not by a signal mask: children inherit it, and the engine would never see SIGTERM.
    """
    seen: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    old = [signal.signal(number, lambda got, _: seen.append(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, old, strict=True):
            signal.signal(number, handler)
    if seen:
        raise KeyboardInterrupt
