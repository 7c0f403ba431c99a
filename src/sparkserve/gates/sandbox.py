"""Runs code that a model wrote: bubblewrap, a read-only Python and nothing else.

The verdict is not made in there. The code returns values and the caller compares them out here, so whoever
prints "passed" has printed a word, and a forged line must hold the right value to be worth anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import secrets
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.gates import syscalls
from sparkserve.gates.contract import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Callable


class Limits(NamedTuple):
    """What one run may take. The tasks need under 0.2 s and 30 MiB; the rest is for slow machines."""

    wall_s: float = 20.0
    cpu_s: int = 5
    memory_mib: int = 512
    output_kib: int = 1024


class CodeError(Exception):
    """The code did not do what was asked; the text says what it did."""


def root() -> Path:
    """The tools root: the closure's Python with bubblewrap beside it. Raises `CannotRunError`."""
    usr = Path(sys.base_prefix)
    if usr.parts[1:3] == ("nix", "store") and (usr / "bin/bwrap").exists():
        return usr.parent
    raise CannotRunError(
        f"no bubblewrap beside the Python in {usr}: run it by ./sparkserve, whose closure has one"
    )


def command(tools: Path, seccomp_fd: int) -> list[str]:
    """The argv that runs Python in the sandbox, up to its `-c`."""
    return [
        str(tools / "usr/bin/bwrap"),
        *["--unshare-all", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"],
        *["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--seccomp", str(seccomp_fd)],
        # A fixed hash seed: the order of a set must not decide between two runs.
        *["--clearenv", "--setenv", "PYTHONHASHSEED", "0", "--setenv", "LC_ALL", "C.UTF-8"],
        # No /proc, no /dev, no /tmp: Python needs none of them. Bubblewrap's own / is writable until here.
        *["--ro-bind", str(tools), str(tools), "--remount-ro", "/", "--chdir", "/", "--"],
        *[str(tools / "usr/bin/python3.11"), "-s", "-S", "-B", "-P", "-c"],
    ]


async def call(
    source: str, function: str, inputs: list[list[Any]], limits: Limits | None = None
) -> list[Any]:
    """What `function` of the Python text `source` returns for each argument list of `inputs`, as JSON values.

    Raises `CodeError` when it fails, hangs or takes more than its limits, and `CannotRunError` when there is
    no sandbox here.
    """
    limits = limits or Limits()
    nonce = secrets.token_hex(16)
    given = {
        "source": source,
        "function": function,
        "inputs": inputs,
        "nonce": nonce,
        "memory_bytes": limits.memory_mib << 20,
        "cpu_s": limits.cpu_s,
    }
    code, out, err = await _run(json.dumps(given).encode(), limits)
    lines = [line for line in map(_parsed, out.splitlines()) if line.get("nonce") == nonce]
    for place, line in enumerate(lines):
        if "failed" in line:
            raise CodeError(f"call {place}: {line['failed']}")
    if len(lines) < len(inputs):
        if not lines and b"bwrap:" in err:  # it never came to Python
            raise CannotRunError(f"no sandbox on this machine: {err.decode(errors='replace').strip()[-300:]}")
        raise CodeError(f"call {len(lines)} did not return: {_how(code, err)}")
    if len(lines) > len(inputs):
        raise CodeError(f"{len(lines)} results for {len(inputs)} calls")
    return [line.get("value") for line in lines]


async def _run(given: bytes, limits: Limits) -> tuple[int, bytes, bytes]:
    """Exit code (negative: a signal), stdout and stderr, killed as a whole when it takes too long or much."""
    tools = root()
    seccomp = os.memfd_create("seccomp")
    try:
        os.write(seccomp, syscalls.program(platform.machine()))
        os.lseek(seccomp, 0, os.SEEK_SET)
        text = files("sparkserve.gates").joinpath("inside.py").read_text()
        process = await asyncio.create_subprocess_exec(
            *command(tools, seccomp),
            text,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[seccomp],
            env={},
        )
    except KeyError:
        raise CannotRunError(f"no list of system calls for {platform.machine()}") from None
    except OSError as error:
        raise CannotRunError(f"bubblewrap does not start: {error}") from None
    finally:
        os.close(seccomp)
    # Bubblewrap's death is that of its pid namespace (--die-with-parent), and so the end of both pipes.
    over: list[str] = []

    def end(why: str) -> None:
        if process.returncode is None:
            over.append(why)
            process.kill()

    timer = asyncio.get_running_loop().call_later(
        limits.wall_s, end, f"it did not end in {limits.wall_s:g} s"
    )
    most = limits.output_kib << 10
    too_much = f"it wrote more than {limits.output_kib} KiB"
    try:
        out, err, _ = await asyncio.gather(
            _read(process.stdout, most, lambda: end(too_much)),
            _read(process.stderr, most, lambda: end(too_much)),
            _write(process.stdin, given),
        )
        code = await process.wait()
    finally:
        timer.cancel()
        if process.returncode is None:
            process.kill()
    if over:
        raise CodeError(over[0])
    return code, out, err


async def _read(stream: asyncio.StreamReader | None, most: int, end: Callable[[], None]) -> bytes:
    """The first `most` bytes of `stream`, read to its end: a pipe that nobody reads would not close."""
    assert stream is not None  # noqa: S101 - for mypy
    data = bytearray()
    while part := await stream.read(1 << 16):
        if len(data) + len(part) > most:
            end()
        else:
            data += part
    return bytes(data)


async def _write(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None  # noqa: S101 - for mypy
    try:
        stream.write(data)
        await stream.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended before it read: its exit code says why
    finally:
        stream.close()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _how(code: int, err: bytes) -> str:
    # Bubblewrap reports a child's signal as 128 + its number.
    if code in (137, 152, -9):
        return "killed at a limit of CPU time or memory"
    last = err.decode(errors="replace").strip().splitlines()[-1:]
    return f"exit code {code} {' '.join(last)[:200]}".strip()
