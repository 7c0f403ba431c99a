"""Who may ask: the keys of the endpoint, as their file has them now."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from sparkserve import api_key
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FIELDS = frozenset({b"authorization", b"x-api-key"})  # of OpenAI's clients, and of Anthropic's


class Keys:
    """The keys in a file, by their digests. `problem` says why there are none: then nobody is let in."""

    def __init__(self, path: Path) -> None:
        """Raises `KEY.FILE`."""
        self._path = path
        self._digests: tuple[bytes, ...] = ()
        self._seen: tuple[int, ...] | None = None
        self.problem = ""
        self._read()

    def poll(self) -> None:
        """Read the file again if it has changed, or could not be read: else one stat."""
        # What hindered it may have been on our side, such as too many open files.
        if self._stat() == self._seen and not self.problem:
            return
        try:
            self._read()
            self.problem = ""
        except SparkserveError as error:
            # Not the keys of before: whoever takes one out and leaves the file unreadable wants it out.
            self._digests, self.problem = (), str(error)

    def known(self, fields: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether header fields (names in lower case) show one of the keys."""
        return any(self._is_one(_shown(name, value)) for name, value in fields if name in FIELDS)

    def _is_one(self, key: bytes) -> bool:
        digest = _digest(key)
        # All of them are compared, also behind the right one: how long that takes says nothing.
        return sum(hmac.compare_digest(digest, each) for each in self._digests) > 0

    def _read(self) -> None:
        self._seen = self._stat()  # first: a change while it is read is seen by the next poll
        self._digests = tuple(_digest(key.encode()) for key in api_key.read(self._path))

    def _stat(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        # ctime: also of a changed mode or owner.
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _shown(name: bytes, value: bytes) -> bytes:
    if name == b"authorization":
        scheme, _, value = value.partition(b" ")
        value = value if scheme.lower() == b"bearer" else b""
    return value.strip()


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
