"""Server-sent events out of bytes that were cut anywhere."""

from __future__ import annotations


class Events:
    """A parser of one stream: the data of each event that has some, in order.

    Names, ids and comments are dropped. An event counts when its empty line is there, as the standard says,
    so that one cut short is never taken for a whole one.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # the start of a line, in pieces: a long one is not copied for each
        self._lines: list[bytes] = []  # of the event under way
        self._after_cr = False  # a line ended with CR, whose LF may still come
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        if b"\n" not in data and b"\r" not in data:
            self._rest.append(data)
            return []
        lines = b"".join([*self._rest, data]).splitlines(keepends=True)
        self._rest = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        events = []
        for ended in lines:
            line = ended.rstrip(b"\r\n")
            if self._first:
                self._first, line = False, line.removeprefix(b"\xef\xbb\xbf")
            if line.startswith(b"data:"):
                self._lines.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._lines.append(b"")
            elif not line and self._lines:
                events.append(b"\n".join(self._lines))
                self._lines = []
        return events
