"""Reading result files: what is none is refused with the place of the first fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkserve import given
from sparkserve.bench import results
from sparkserve.errors import SparkserveError

EMPTY = (
    '{"schema": "sparkserve.bench/1", "mode": "decode", "seed": 0, "settings": {}, "machine": {}, '
    '"boots": []}'
)


def test_reads(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(EMPTY)
    assert results.read(file).mode == "decode"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "its start"),
        (b"\xff\xfe", "its start"),
        (b"[" * 100_000, "its start"),
        (EMPTY.replace("bench/1", "bench/2").encode(), "at schema"),
        (EMPTY.replace("[]", '[{"id": "a"}]').encode(), "at boots.0.started"),
        (EMPTY.replace('"seed": 0', '"seed": "0"').encode(), "at seed"),
    ],
)
def test_refuses(tmp_path: Path, text: bytes, said: str) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(text)
    with pytest.raises(SparkserveError) as caught:
        results.read(file)
    assert caught.value.id == "BENCH.RESULT"
    assert said in caught.value.found
    assert caught.value.where == str(file)


def test_does_not_read_a_device_without_end() -> None:
    with pytest.raises(SparkserveError) as caught:
        results.read(Path("/dev/zero"))
    assert (caught.value.id, caught.value.found) == ("BENCH.RESULT", f"more than {given.MOST >> 20} MiB")
