"""Server-sent events, cut anywhere."""

from __future__ import annotations

import random

import pytest

from sparkserve.client.sse import Events

STREAM = (
    b'\xef\xbb\xbfdata: {"a": 1}\n\n'
    b": a comment\n\n"
    b"event: sglext_ids\r\nid: 7\r\ndata: two\r\ndata: lines\r\n\r\n"
    b"data:no space\r\rdata\n\n"
    b"data:  two spaces \xe4\xb8\x96\n\n"
    b"retry: 10\n\n\n\n"
    b"data: [DONE]\n\n"
)
DATA = [b'{"a": 1}', b"two\nlines", b"no space", b"", b" two spaces \xe4\xb8\x96", b"[DONE]"]


def fed(parts: list[bytes]) -> list[bytes]:
    events = Events()
    return [event for part in parts for event in events.feed(part)]


def test_a_whole_stream() -> None:
    assert fed([STREAM]) == DATA


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_cut_at_every_byte(cut: int) -> None:
    assert fed([STREAM[:cut], STREAM[cut:]]) == DATA


def test_byte_by_byte_and_in_any_pieces() -> None:
    assert fed([STREAM[i : i + 1] for i in range(len(STREAM))]) == DATA
    seed = random.randrange(2**32)  # noqa: S311 - a test
    print("seed", seed)
    cuts = random.Random(seed)  # noqa: S311 - a test
    for _ in range(200):
        places = sorted(cuts.randrange(len(STREAM)) for _ in range(cuts.randrange(20)))
        parts = [STREAM[a:b] for a, b in zip([0, *places], [*places, len(STREAM)], strict=True)]
        assert fed(parts) == DATA


def test_an_event_is_there_as_soon_as_its_empty_line_is() -> None:
    events = Events()
    assert events.feed(b"data: a\r") == []
    assert events.feed(b"\r") == [b"a"]
    assert events.feed(b"\ndata: b\n") == []
    assert events.feed(b"\n") == [b"b"]


def test_an_event_without_its_end_is_none() -> None:
    assert fed([b"data: a\n\ndata: half"]) == [b"a"]
    assert fed([b"data: a\n\ndata: whole line\n"]) == [b"a"]
