"""An endpoint with keys: who gets in, who does not, and what becomes of changed files."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
from typing import TYPE_CHECKING, Any

import key_values
import pytest
from front_world import CHAT, Engine, Log, World, request, run, world

from sparkserve.errors import SparkserveError
from sparkserve.front.config import Address, Config
from sparkserve.front.keys import Keys
from sparkserve.front.server import Front

if TYPE_CHECKING:
    from pathlib import Path

dumpable = key_values.dumpable
KEY, OTHER = key_values.new(), key_values.new()


async def answer(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")


async def ask(
    w: World, fields: str = "", method: str = "GET", path: str = "/v1/models"
) -> tuple[int, dict[str, str], Any]:
    """A request with these header lines; the body is JSON."""
    lines = "".join(f"{field}\r\n" for field in fields.split("; ") if field)
    status, headers, body = await w.ask(request(method, path, b"", close=True, extra=lines))
    return status, headers, json.loads(body) if body else None


async def status_of(w: World, key: str) -> int:
    return (await ask(w, f"Authorization: Bearer {key}"))[0]


@pytest.mark.parametrize(
    "fields",
    [
        f"Authorization: Bearer {KEY}",
        f"authorization: bearer  {OTHER}",
        f"X-Api-Key: {KEY}",
        f"x-api-key: wrong; Authorization: Bearer {OTHER}",
    ],
)
def test_each_key_gets_in_by_either_header_and_stays_with_the_front(tmp_path: Path, fields: str) -> None:
    file = key_values.write(tmp_path / "keys", KEY, "# of others", OTHER)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            assert await ask(w, fields) == (200, {"content-length": "2", "connection": "close"}, {})
            (head,) = w.engine.heads
            assert [name for name in (b"authorization", b"api-key", b"bearer") if name in head.lower()] == []
            assert KEY not in str(w.log.lines)
            assert w.log.lines[0]["end"] == "ok"

    run(test)


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "Authorization: Bearer",
        f"Authorization: Bearer {KEY[:-1]}",
        f"Authorization: Bearer {KEY}x",
        f"Authorization: Basic {KEY}",
        f"Authorization: {KEY}",
        f"X-Api-Key: Bearer {KEY}",
        f"Api-Key: {KEY}",
        f"Cookie: key={KEY}",
    ],
)
def test_without_a_key_nothing_reaches_the_engine(tmp_path: Path, fields: str) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            for method, path in (
                ("POST", CHAT),
                ("GET", "/v1/models"),
                ("OPTIONS", CHAT),
                ("GET", "/flush_cache"),
                ("GET", "/metrics"),
                ("GET", f"/v1/models?api_key={KEY}"),
                ("POST", "/health"),
                ("GET", "/health/../v1/models"),
            ):
                status, headers, body = await ask(w, fields, method, path)
                assert (status, headers["www-authenticate"], headers["connection"]) == (
                    401,
                    "bearer",
                    "close",
                )
                error = body["error"]
                assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
                assert KEY[:8] not in json.dumps(body)
            _, _, body = await ask(w, fields, "POST", "/v1/messages")
            assert (body["type"], body["error"]["type"]) == ("error", "authentication_error")
            w.group("down")
            assert (await ask(w, fields))[0] == 401
            assert w.engine.heads == []
            assert {line["end"] for line in w.log.lines} == {"unauthorized"}
            assert w.front.counts["unauthorized"] == 10
            assert KEY[:8] not in str(w.log.lines)

    run(test)


def test_health_and_the_status_page_ask_for_none(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            for path in ("/health", "/ready", "/ping", "/sparkserve/status"):
                status, _, body = await ask(w, path=path)
                assert status in (200, 503)
                assert body.get("status", body.get("verdict")) in ("ok", "proving")
                assert "error" not in body

    run(test)


def test_a_new_file_counts_at_once_and_what_ran_goes_on(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)
    go = asyncio.Event()

    async def slow(
        engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        if b"/slow" in head:
            await go.wait()
        await answer(engine, reader, writer, head)

    async def test() -> None:
        async with world(tmp_path, slow, api_key_file=file) as w:
            running = asyncio.create_task(ask(w, f"X-Api-Key: {KEY}", path="/slow"))
            while not w.engine.heads:
                await asyncio.sleep(0.01)
            for keys, expected in (
                ((KEY, OTHER), [200, 200]),
                ((OTHER,), [401, 200]),
                ((KEY,), [200, 401]),
            ):
                key_values.write(file, *keys)
                w.front.tick()
                assert [await status_of(w, KEY), await status_of(w, OTHER)] == expected
            file.write_text(f"{OTHER}\n")  # in place
            w.front.tick()
            assert [await status_of(w, KEY), await status_of(w, OTHER)] == [401, 200]
            go.set()
            assert (await running)[0] == 200

    run(test)


def test_the_front_looks_by_itself(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            key_values.write(file, OTHER)
            async with asyncio.timeout(10):
                while await status_of(w, OTHER) != 200:
                    await asyncio.sleep(0.05)
            assert await status_of(w, KEY) == 401

    run(test)


@pytest.mark.parametrize("bad", ["gone", "mode", "empty", "store"])
def test_a_file_that_turns_bad_lets_nobody_in_until_it_is_good(
    tmp_path: Path, bad: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    def spoil() -> str:
        match bad:
            case "gone":
                file.unlink()
                return "No such file or directory"
            case "mode":
                file.chmod(0o644)
                return "mode 0644"
            case "empty":
                key_values.write(file, "# nobody")
                return "found none"
        monkeypatch.setattr("sparkserve.api_key.STORE", str(tmp_path))
        file.touch()
        return "which everybody can read"

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            assert await status_of(w, KEY) == 200
            why = spoil()
            w.front.tick()
            status, headers, body = await ask(w, f"Authorization: Bearer {KEY}")
            assert (status, headers["retry-after"], body["error"]["code"]) == (503, "10", "keys_unreadable")
            assert str(file) not in str(body)
            assert len(w.engine.heads) == 1
            assert (await ask(w, path="/health"))[2]["status"] in ("ok", "proving")
            monkeypatch.undo()
            key_values.write(file, KEY)
            w.front.tick()
            assert await status_of(w, KEY) == 200
            said = capsys.readouterr().err
            assert said.count("KEY.FILE") == 1
            assert why in said
            assert str(file) in said
            assert KEY not in said
            assert "can be read again" in said

    run(test)


def test_a_file_that_could_not_be_read_for_a_moment_counts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys(key_values.write(tmp_path / "keys", KEY))
    key_values.write(tmp_path / "keys", KEY, OTHER)

    def full(_: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("sparkserve.given.opened", full)
        keys.poll()
        assert "Too many open files" in keys.problem
        assert not keys.known([(b"x-api-key", KEY.encode())])
    keys.poll()
    assert keys.problem == "" and keys.known([(b"x-api-key", OTHER.encode())])


def test_a_front_without_its_keys_does_not_start(tmp_path: Path) -> None:
    given = Config((), Address("127.0.0.1", 1), "m", api_key_file=tmp_path / "none")
    with pytest.raises(SparkserveError, match=r"KEY\.FILE"):
        Front(given, Log())


def test_a_line_that_is_no_header_is_not_said_back(tmp_path: Path) -> None:
    file = key_values.write(tmp_path / "keys", KEY)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            for line in (f"Authorization Bearer {KEY}", f"Authorization: Bearer {KEY}\0", f"{KEY}"):
                status, _, body = await w.ask(f"GET / HTTP/1.1\r\nhost: x\r\n{line}\r\n\r\n".encode())
                assert (status, KEY.encode() in body) == (400, False)
                assert b"Not HTTP: illegal header line." in body
            status, _, body = await w.ask(f"GET {KEY} \r\n\r\n".encode())
            assert (status, KEY.encode() in body) == (400, False)

    run(test)


def test_the_time_says_nothing_of_which_key_or_how_much_of_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_values.write(tmp_path / "keys", KEY, OTHER, key_values.new())
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return compare(a, b)

    async def test() -> None:
        async with world(tmp_path, answer, api_key_file=file) as w:
            monkeypatch.setattr("sparkserve.front.keys.hmac.compare_digest", counted)
            for key in (KEY, OTHER, "x", "x" * 4000):
                await status_of(w, key)
            assert compared == [(32, 32)] * 3 * 4

    run(test)
