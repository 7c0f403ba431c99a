"""Which header fields pass through: all but those about one connection (RFC 9110 7.6.1), and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.front import keys

if TYPE_CHECKING:
    from collections.abc import Iterable

Fields = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body. `data` is not empty: an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def pass_on(fields: Iterable[tuple[bytes, bytes]]) -> tuple[Fields, bool]:
    """The fields (names in lower case) to forward, and whether the body is chunked.

    A chunked body is chunked anew, so a content-length beside it, a possible attack (RFC 9112 6.3), goes too.
    """
    fields = list(fields)
    named = {
        token.strip().lower()
        for name, value in fields
        if name == b"connection"
        for token in value.split(b",")
    }
    chunked = any(name == b"transfer-encoding" for name, _ in fields)
    # The engine wants no key, and may log what it gets.
    drop = _HOP_BY_HOP | keys.FIELDS | named - {b"content-length", b"host"}
    if chunked:
        drop |= {b"content-length"}
    return [(name, value) for name, value in fields if name not in drop], chunked
