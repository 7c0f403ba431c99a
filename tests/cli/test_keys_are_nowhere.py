"""A key of the endpoint is in its file, and in no other place that anybody could look at.

A real front, an engine without a model, and real clients, with a key that nobody has seen: then everything
that they wrote is searched for it, and what /proc shows of every process while they run.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import scripted
from scripted import Script

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
PLAN = TESTS / "golden" / "local-triangle" / "spark-0.json"
CHAT = {"model": "smollm2-135m", "messages": [{"role": "user", "content": "Say a word."}], "max_tokens": 4}
NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def start(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """`sparkserve` as users start it; a core dump of it would lie in `folder`."""
    argv = [sys.executable, "-m", "sparkserve.cli.main", *words]
    own = {"PYTHONPATH": str(TESTS.parent / "src"), "SPARKSERVE_CHECKOUT": str(folder), **environment}
    return subprocess.Popen(
        argv, env={**os.environ, **own}, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@contextmanager
def front(folder: Path, key_file: Path, engine: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A front that asks for the keys in `key_file`, and its URL. It says that the group is up."""
    plan = json.loads(PLAN.read_text())
    plan["serving"]["api_key_file"] = str(key_file)
    (folder / "plan.json").write_text(json.dumps(plan))
    run = folder / "run"
    run.mkdir()
    (run / "group.json").write_text('{"schema":"sparkserve.group/1","state":"up","boot":"1"}')
    with httpx.Client(trust_env=False) as client:
        for _ in range(5):  # another program may take the port
            port = 20000 + secrets.randbelow(10000)
            url = f"http://127.0.0.1:{port}"
            words = ["--listen", f"127.0.0.1:{port}", "--engine", engine.removeprefix("http://")]
            process = start(folder, "front", "run", "--plan", "plan.json", "--run-dir", str(run), *words)
            try:
                while process.poll() is None:
                    try:
                        if client.get(f"{url}/health").status_code == 200:
                            yield url, process
                            return
                    except httpx.TransportError:
                        pass
                    time.sleep(0.05)
            finally:
                process.kill()
                process.wait()
    raise AssertionError(process.communicate())


def written(folder: Path, key: str) -> list[str]:
    """The files below a folder that have the key in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in files if key.encode() in path.read_bytes())


def shown(key: str) -> set[int]:
    """The processes whose arguments or environment have the key in them, as /proc shows them."""
    found = set()
    for process in Path("/proc").iterdir():
        for name in ("cmdline", "environ"):
            try:
                if process.name.isdigit() and key.encode() in (process / name).read_bytes():
                    found.add(int(process.name))
            except OSError:  # it is gone, or another user's
                continue
    return found


def ended(process: subprocess.Popen[str], key: str) -> tuple[int, str, set[int]]:
    """Exit code, all that it said, and who showed the key while it ran."""
    seen = set()
    while process.poll() is None:
        seen |= shown(key)
        time.sleep(0.05)
    out, err = process.communicate()
    return process.returncode, out + err, seen


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    key = secrets.token_hex(32)
    (tmp_path / "log").write_text(f"Bearer {key}")
    assert written(tmp_path, key) == ["log"]
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    for argv, more in (([*sleep, key], {}), (sleep, {"KEY": key})):
        with subprocess.Popen(argv, env={**os.environ, **more}, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert shown(key) == {process.pid}
            process.kill()


def test_a_key_is_in_its_file_alone(tmp_path: Path) -> None:
    key = secrets.token_hex(32)
    file, wrong, open_ = (tmp_path / name for name in ("keys", "wrong", "open"))
    for path, text in ((file, f"# of all\n{key}\n"), (wrong, key[::-1]), (open_, key)):
        path.touch(0o600)
        path.write_text(text)
    open_.chmod(0o644)
    said: list[str] = []
    seen: set[int] = set()
    with scripted.serve(Script()) as engine, front(tmp_path, file, engine) as (url, process):

        def ask(status: int, key: str | None, path: str = "/v1/chat/completions", **headers: str) -> None:
            fields = headers if key is None else {"Authorization": f"Bearer {key}", **headers}
            answer = httpx.post(f"{url}{path}", json=CHAT, headers=fields, trust_env=False)
            assert answer.status_code == status, answer.text
            said.append(f"{answer.headers} {answer.text}")

        def gate(code: int, key_file: Path | None, *words: str) -> None:
            environment = {} if key_file is None else {"SPARKSERVE_API_KEY_FILE": str(key_file)}
            at = ("--endpoint", url, "--model", "smollm2-135m", "--output", str(tmp_path / "evidence"))
            found, text, who = ended(start(tmp_path, "gate", "run", "tscan", *at, *words, **environment), key)
            assert found == code, text
            said.append(text)
            seen.update(who)

        ask(200, key)
        ask(200, None, **{"X-Api-Key": key})
        ask(401, None)
        ask(401, key[:-1])
        ask(401, None, f"/v1/chat/completions?api_key={key}")
        ask(401, None, "/v1/messages", **{"Api-Key": key})
        ask(404, key, "/no/such/page")
        gate(0, file, "--quick")
        gate(101, wrong, "--quick")
        gate(100, open_, "--quick")
        gate(101, None, "--quick")
        gate(100, None, "--api-key-file", str(open_), "--json")
        seen |= shown(key)
        file.write_text(f"{key}\n{key} {key}\n")  # a line that is no key
        while httpx.get(f"{url}/v1/models", trust_env=False).status_code != 503:
            time.sleep(0.05)
        ask(503, key)
        process.send_signal(signal.SIGTERM)
        code, text, who = ended(process, key)
        (tmp_path / "journal").write_text(text)
        seen |= who
    assert code == 0
    assert "KEY.FILE" in text
    assert text.count('"end":"ok"') > 2
    assert text.count('"end":"unauthorized"') >= 5
    assert written(tmp_path, key) == ["keys", "open"]
    assert [words for words in said if key in words] == []
    assert seen == set()


def killed(process: subprocess.Popen[Any]) -> bool:
    """End a process as a fault does; whether it left a core dump."""
    resource.prlimit(process.pid, resource.RLIMIT_CORE, NO_LIMIT)
    process.send_signal(signal.SIGSEGV)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -signal.SIGSEGV
    return os.WCOREDUMP(status)


def test_a_front_with_keys_leaves_no_core_dump(tmp_path: Path) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"core dumps of this machine go elsewhere: {pattern.strip()}")
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path)
    try:
        dumps = killed(other)
    except PermissionError:
        dumps = False
    finally:
        other.kill()
    if not dumps:
        pytest.skip("no process leaves core dumps here")
    key = secrets.token_hex(32)
    file = tmp_path / "keys"
    file.touch(0o600)
    file.write_text(key)
    with scripted.serve(Script()) as engine, front(tmp_path, file, engine) as (_, process):
        assert killed(process) is False
    assert written(tmp_path, key) == ["keys"]
