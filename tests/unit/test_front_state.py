"""The files between the front and the group controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sparkserve.front import config, state
from sparkserve.front.headers import pass_on

if TYPE_CHECKING:
    from pathlib import Path


def test_group_file_follows_the_controller(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    file = state.GroupFile(path)
    assert file.poll().state == "down"
    assert str(path) in file.poll().reason
    for boot in ("b1", "b2"):
        state.write(path, state.Group(state="up", boot=boot))
        assert (file.poll().state, file.poll().boot) == ("up", boot)
    path.unlink()
    assert file.poll().state == "down"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"state":"upp"}', '{"state":"up","more":1}', '{"schema":"x","state":"up"}', "\0\xff"],
)
def test_a_damaged_file_means_down_and_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(text)
    group = state.GroupFile(path).poll()
    assert group.state == "down"
    assert "damaged" in group.reason
    assert "\n" not in group.reason


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    group = state.Group(state="draining", reason="deploy", boot="b7", since=12.5, retry_after_s=3)
    state.write(tmp_path / "group.json", group)
    assert state.GroupFile(tmp_path / "group.json").poll() == group
    assert '"schema":"sparkserve.group/1"' in (tmp_path / "group.json").read_text()


def test_hop_by_hop_fields_and_keys_stay_behind() -> None:
    fields, chunked = pass_on(
        [
            (b"host", b"a"),
            (b"connection", b"keep-alive, X-Private , host, content-length"),
            (b"keep-alive", b"timeout=5"),
            (b"x-private", b"1"),
            (b"te", b"trailers"),
            (b"upgrade", b"h2c"),
            (b"authorization", b"Bearer k"),
            (b"x-api-key", b"k"),
            (b"content-length", b"3"),
        ]
    )
    assert fields == [(b"host", b"a"), (b"content-length", b"3")]
    assert not chunked


def test_a_length_beside_chunks_is_dropped() -> None:
    fields, chunked = pass_on([(b"content-length", b"3"), (b"transfer-encoding", b"chunked")])
    assert (fields, chunked) == ([], True)


def test_address() -> None:
    assert config.Address.parse("127.0.0.1:80") == config.Address("127.0.0.1", 80)
    assert str(config.Address.parse("[::1]:80")) == "[::1]:80"
    for wrong in ("80", ":80", "a:b", "a:70000"):
        with pytest.raises(ValueError):
            config.Address.parse(wrong)
