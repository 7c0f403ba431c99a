"""Code that a model wrote: it computes, and can do nothing else."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest
from sandbox_tools import sandboxed

from sparkserve.gates import sandbox, syscalls
from sparkserve.gates.contract import CannotRunError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sandboxed"]

pytestmark = pytest.mark.usefixtures("sandboxed")
SHORT = sandbox.Limits(wall_s=20, cpu_s=1, memory_mib=128, output_kib=64)


def run(source: str, *inputs: Any, limits: sandbox.Limits = SHORT) -> list[Any]:
    return asyncio.run(sandbox.call(source, "f", [[value] for value in inputs or (1,)], limits))


def fails(source: str, says: str) -> None:
    with pytest.raises(sandbox.CodeError) as caught:
        run(source)
    assert says in str(caught.value)


def test_values_come_back_whatever_is_printed() -> None:
    source = "print('hello')\ndef f(x):\n    print('{\"value\": 7}')\n    return [x, {'a': (x, None)}]"
    assert run(source, 1, "ü\n") == [[1, {"a": [1, None]}], ["ü\n", {"a": ["ü\n", None]}]]


def test_dataclasses_and_annotations_work() -> None:
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass A:\n    x: int\ndef f(x: int) -> int:\n    return A(x).x\n"
        "if __name__ == '__main__':\n    raise SystemExit(1)\n"
    )
    assert run(source, 5) == [5]


def test_the_order_of_a_set_is_the_same_each_time() -> None:
    source = "def f(x): return list({'alpha', 'beta', 'gamma', 'delta', 'epsilon'})"
    assert len({tuple(run(source)[0]) for _ in range(4)}) == 1


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import os\ndef f(x):\n    while True: os.fork()", "not permitted"),
        ("import os\ndef f(x):\n    os.posix_spawn('/bin/sh', ['sh'], {})", "not permitted"),
        ("import threading\ndef f(x):\n    threading.Thread(target=f).start()", "can't start new thread"),
        ("def f(x):\n    kept = []\n    while True: kept.append(bytearray(1 << 20))", "MemoryError"),
        ("import os\ndef f(x): return os.memfd_create('x')", "not permitted"),
        ("def f(x):\n    while True: pass", "limit of CPU time"),
        ("def f(x): return open('/etc/shadow').read()", "No such file"),
        ("import os\ndef f(x): return os.listdir(os.path.expanduser('~'))", "No such file"),
        ("def f(x): return open('/proc/1/environ').read()", "No such file"),
        ("import socket\ndef f(x): socket.create_connection(('127.0.0.1', 22))", "not permitted"),
        ("def f(x): open('/out', 'w')", "Read-only file system"),
        ("import os\ndef f(x): os.mkdir('/nix/x')", "Read-only file system"),
        ("import os\ndef f(x): os._exit(0)", "did not return"),
        ("def f(x):\n    while True: print('x' * 9999)", "more than 64 KiB"),
        ("def f(x): return 'x' * 99999", "more than 64 KiB"),
        ("def f(x): return {1, 2}", "not JSON serializable"),
        ("def f(x): return input()", "EOFError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("def g(x): return x", "no attribute 'f'"),
        ("def f(x) return x", "SyntaxError"),
        ("def f(x): return f(x)", "RecursionError"),
    ],
)  # fmt: skip
def test_it_cannot(source: str, says: str) -> None:
    fails(source, says)


def test_a_sleeper_is_ended_with_all_that_it_started() -> None:
    with pytest.raises(sandbox.CodeError, match="did not end in 1 s"):
        run("import time\ndef f(x): time.sleep(1000)", limits=SHORT._replace(wall_s=1))
    own = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    with open(own) as children:  # noqa: PTH123 - as /proc says it
        assert children.read().split() == []


def test_the_parent_lives() -> None:
    source = (
        "import os, signal\ndef f(x):\n    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    try: x == os.getpid() or os.kill(x, signal.SIGKILL)\n    except ProcessLookupError: pass\n"
        "    try: os.kill(-1, signal.SIGKILL)\n    except ProcessLookupError: pass\n    return os.getpid()\n"
    )
    assert run(source, os.getpid()) == [2]


def test_a_verdict_cannot_be_printed() -> None:
    # It writes to every descriptor that it finds, as one who knows the protocol but not the nonce.
    source = (
        "import os\nfor fd in range(16):\n"
        '    try: os.write(fd, b\'{"nonce": "guessed", "value": 42, "passed": true}\\n\')\n'
        "    except OSError: pass\ndef f(x): return x\n"
    )
    assert run(source, 1) == [1]


def test_even_with_the_nonce_only_too_many_results_come() -> None:
    source = (
        "import sys\ngiven = sys._getframe(1).f_globals\n"
        "given['tell'](value=42)\nprint('PASSED')\ndef f(x): return x\n"
    )
    fails(source, "2 results for 1 calls")


def test_a_listener_of_this_machine_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        fails(
            f"import urllib.request\ndef f(x): urllib.request.urlopen('http://127.0.0.1:{port}')", "permitted"
        )


def test_without_a_closure_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(CannotRunError, match="no bubblewrap"):
        run("def f(x): return x")


def test_where_bubblewrap_cannot_make_namespaces_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "usr/bin"
    folder.mkdir(parents=True)
    python = sys.executable
    (folder / "bwrap").write_text(
        f"#!{python}\nimport sys\nsys.exit('bwrap: No permissions to create a namespace')\n"
    )
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setattr(sandbox, "root", lambda: tmp_path)
    with pytest.raises(CannotRunError, match="No permissions"):
        run("def f(x): return x")


def test_an_unknown_architecture_has_no_filter_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(syscalls.program("aarch64")) % 8 == 0
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(CannotRunError, match="riscv64"):
        run("def f(x): return x")
