"""Files of keys: what is taken, what is refused, and that no error tells what is in one."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import key_values
import pytest
from client_world import server, whole
from fake_engine import FakeEngine

from sparkserve import api_key
from sparkserve.client.client import Client
from sparkserve.engine import chat, smoke
from sparkserve.errors import SparkserveError
from sparkserve.gates import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

dumpable = key_values.dumpable
KEY = key_values.new()


@contextmanager
def serving(fault: str = "") -> Iterator[FakeEngine]:
    with FakeEngine(fault=fault) as engine:
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        yield engine
        engine.shutdown()


def refusal(path: Path) -> SparkserveError:
    with pytest.raises(SparkserveError) as refused:
        api_key.read(path)
    assert (refused.value.id, refused.value.exit_code, refused.value.where) == ("KEY.FILE", 100, str(path))
    return refused.value


def test_a_key_a_line(tmp_path: Path) -> None:
    other = key_values.new()
    file = key_values.write(tmp_path / "keys", "# of agents", "", f"  {KEY}\r", "   # of people", other)
    assert api_key.read(file) == (KEY, other)
    assert api_key.headers(file) == {"Authorization": f"Bearer {KEY}"}
    assert api_key.headers(None) == {}
    (tmp_path / "link").symlink_to(file)
    assert api_key.read(tmp_path / "link") == (KEY, other)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], "none"),
        (["# only words", ""], "none"),
        ([KEY, "short"], "something else in line 2"),
        ([f"{KEY} {KEY}"], "something else in line 1"),
        ([f"{KEY}ä"], "something else in line 1"),
        ([KEY + "x" * 512], "something else in line 1"),
        ([KEY] * 1200, "more than 64 KiB"),
    ],
)
def test_what_is_no_key_is_refused_without_a_word_of_it(tmp_path: Path, lines: list[str], found: str) -> None:
    error = refusal(key_values.write(tmp_path / "keys", *lines))
    assert error.found == found
    assert KEY not in str(error)
    assert "short" not in str(error)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o611])
def test_a_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    error = refusal(key_values.write(tmp_path / "keys", KEY, mode=mode))
    assert (error.found, error.do) == (f"mode {mode:04o}", f"sudo chmod 600 {tmp_path}/keys")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").found == "No such file or directory"
    assert refusal(tmp_path).found == "Is a directory"
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert refusal(tmp_path / "pipe").found == "no regular file"
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert "openssl rand -hex 32" in refusal(tmp_path / "circle").do


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)
    os.chown(file, 12345, -1)
    assert refusal(file).found == "a file of user 12345"


def test_a_file_in_the_store_is_refused_also_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_key, "STORE", str(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    file = key_values.write(tmp_path / "store" / "keys", KEY)
    (tmp_path / "keys").symlink_to(file)
    error = refusal(tmp_path / "keys")
    assert error.found == f"{file}, which everybody can read"
    assert error.do.endswith("change that key.")


def test_requests_of_the_client_show_the_key(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    async def test(key_file: Path | None) -> str:
        async with server(whole({})) as (endpoint, seen), Client(endpoint, key_file=key_file) as client:
            await client.get("/v1/models")
            return seen.heads[0].lower()

    assert f"\r\nauthorization: bearer {KEY}\r\n" in asyncio.run(test(file))
    assert "authorization" not in asyncio.run(test(None))


def test_an_endpoint_that_does_not_take_it_is_named_and_the_key_is_not(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)
    ways: list[Callable[[str, str, Path], object]] = [smoke.check, subject.of_endpoint]
    with serving(fault="locked") as engine:
        for ask in ways:
            with pytest.raises(SparkserveError) as refused:
                ask(engine.endpoint, "m", file)
            assert (refused.value.id, refused.value.where) == ("KEY.REFUSED", engine.endpoint)
            assert "--api-key-file" in refused.value.do
            assert KEY not in str(refused.value)
        assert engine.keys == [f"Bearer {KEY}"] * 2


def test_smoke_and_what_is_under_test_show_the_key(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)
    with serving() as engine:
        assert smoke.check(engine.endpoint, "m", file)["answer"]
        chat.complete(engine.endpoint, "m", "?", max_tokens=1, timeout_s=5)
        target = subject.of_endpoint(engine.endpoint, "m", file)
        assert engine.keys == [f"Bearer {KEY}", f"Bearer {KEY}", None, f"Bearer {KEY}"]
    assert (target.key_file, KEY in repr(target)) == (file, False)
