"""The lines of a node's boot logs, for a reader far away who may lose us and come back.

Each line comes with its place, `BOOT:OFFSET` after it: whoever asks for what comes after a place gets every
line once, also over a new boot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sparkserve.group import boot_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

LOOK_S = 0.2


def read(
    logs: Path, count: int, after: str = "", *, ended: Callable[[], bool] = lambda: True
) -> Iterator[tuple[str, str]]:
    """Place and text of the lines after the place `after`, else of the newest boot's last `count`.

    When there is nothing new, `ended` may wait, and says whether this is the end. Boots that begin meanwhile
    follow, each after a line that names it.
    """
    boot, offset = _begin(logs, count, after)
    while True:
        if boot is not None:
            with suppress(FileNotFoundError), boot_logs.file(logs, boot).open("rb") as file:
                file.seek(offset)
                yield from _follow(file, logs, boot, ended)
        following = _next(logs, boot)
        if following is None:
            if ended():
                return
            continue
        boot, offset = following, 0
        yield f"{boot}:0", f"== boot {boot} =="


def _follow(file: BinaryIO, logs: Path, boot: int, ended: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """The lines from here to the end of a boot that another one followed."""
    begin = file.tell()
    over = False
    while True:
        line = file.readline()
        if line.endswith(b"\n"):
            begin += len(line)
            yield f"{boot}:{begin}", _text(line)
        elif over or ended():
            if line:
                yield f"{boot}:{begin + len(line)}", _text(line)
            return
        else:
            over = _next(logs, boot) is not None  # then it has written its last; read that
            file.seek(begin)  # half a line: once more when it is whole


def _begin(logs: Path, count: int, after: str) -> tuple[int | None, int]:
    """Boot and offset to begin at; no boot when there is none."""
    with suppress(ValueError, FileNotFoundError):
        boot, offset = (int(part) for part in after.split(":"))
        # A power cut may have taken the end of the file.
        return boot, min(offset, boot_logs.file(logs, boot).stat().st_size)
    numbers = boot_logs.numbers(logs)
    if not numbers:
        return None, 0
    data = b""
    with suppress(FileNotFoundError):  # a boot that is just being removed
        data = boot_logs.file(logs, numbers[-1]).read_bytes()
    lines = data.splitlines(keepends=True)
    return numbers[-1], sum(map(len, lines[: max(0, len(lines) - count)]))


def _next(logs: Path, boot: int | None) -> int | None:
    return next((number for number in boot_logs.numbers(logs) if boot is None or number > boot), None)


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")
