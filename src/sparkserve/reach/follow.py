"""The lines of several nodes as one stream, also over the end of a connection or of a node."""

from __future__ import annotations

import json
import queue
import threading
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sparkserve.commands import Command
    from sparkserve.runner import Runner

RETRY_S = 1.0
LOOK_S = 0.2


def entry(line: str) -> tuple[str, str]:
    """Place and text of a line in the form of `journalctl --output=json`."""
    value = json.loads(line)
    text = value["MESSAGE"]
    if isinstance(text, list):  # journalctl's form of what is not UTF-8
        text = bytes(text).decode(errors="replace")
    return value["__CURSOR"], text or ""


def follow(
    runner: Runner, nodes: Sequence[str], command: Callable[[str], Command], ended: Callable[[], bool]
) -> Generator[tuple[str, str], None, None]:
    """Node and text of every line that `command(place)` prints on `nodes`, as they come, until `ended()`.

    `place` is "" at first; a command that ends is run again with the place after the last line that came.
    What keeps a node away is told once.
    """
    found: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    stop = threading.Event()
    threads = [
        threading.Thread(target=_read, args=(runner, node, command, found.put, stop), daemon=True)
        for node in nodes
    ]
    for thread in threads:
        thread.start()
    try:
        while not ended():
            try:
                yield found.get(timeout=LOOK_S)
            except queue.Empty:
                continue
    finally:
        stop.set()
        for thread in threads:
            while thread.is_alive():
                runner.close()  # again: a command may just have begun
                thread.join(LOOK_S)


def _read(
    runner: Runner,
    node: str,
    command: Callable[[str], Command],
    put: Callable[[tuple[str, str]], None],
    stop: threading.Event,
) -> None:
    place = said = ""
    while not stop.is_set():
        why = "its log ended"
        try:
            for line in runner.lines(node, command(place)):
                place, text = entry(line)
                put((node, text))
                said = ""
        except SparkserveError as error:
            why = error.found
        except ValueError:  # the last line of a command that was killed
            pass
        if why != said and not stop.is_set():
            console.print(f"{node}: {why}; waiting for it.", markup=False)
            said = why
        stop.wait(RETRY_S)
