"""Where commands run: here, on a node over SSH, or nowhere (a record, for tests).

A runner refuses what is above the safety class it was made for; without a word it only reads.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from sparkserve import commands, nix
from sparkserve.commands import Safety
from sparkserve.errors import SparkserveError
from sparkserve.resident import NoAnswerError, Resident

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from sparkserve.commands import Command

FORWARD_S = (
    10.0  # until a port leads to a node; a node that is out of memory takes the connection and no more
)
SSH_FAILED = 255  # ssh's own exit code; a command on the node may also end with it


@dataclass(frozen=True)
class Result:
    """How a command ended: exit code, and what it wrote as text."""

    code: int
    out: str = ""
    err: str = ""


class Runner(Protocol):
    """Runs commands on nodes, which are known by name."""

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """Run `command` on `node` to its end, whatever its exit code.

        `feed` is the argv of a program on this machine whose output becomes the command's stdin. Raises
        `NODE.SAFETY` when the runner may not, `NODE.UNREACHABLE` when the node does not answer and
        `NODE.COMMAND` when the time is over.
        """
        ...

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """Copy the closure of the store path `path` into the node's store; `on_line` gets Nix's progress.

        Raises as `run`, and `NODE.COMMAND` when the copy fails.
        """
        ...

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """Run `command` on `node` for as long as it likes; the lines of its stdout as they come.

        Its stdin ends with the iterator, and with this process, however that ends: a command that reads it
        to its end stays nowhere. Raises as `run`, and `NODE.COMMAND` when it ends otherwise than with 0.
        """
        ...

    def close(self) -> None:
        """End what still runs on behalf of this runner, and its connections."""
        ...


def check(runner: Runner, node: str, command: Command, *, feed: Sequence[str] | None = None) -> str:
    """Run `command` and return its stdout. Raises `NODE.COMMAND` unless it ends with 0, else as `run`."""
    result = runner.run(node, command, feed=feed)
    if result.code == 0:
        return result.out
    raise failed(node, command, f"exit code {result.code}: {_end(result.err)}")


def garbled(node: str, command: Command, said: str) -> SparkserveError:
    """The error for an answer that is not one of `command`'s."""
    return SparkserveError(
        "NODE.COMMAND",
        expected=f"the answer of: {command.line()[:200]}",
        found=" ".join(said.split())[:200] or "nothing",
        where=node,
        do=f"What root's shell on {node} prints at its start, as in ~/.bashrc, must be only for people: "
        "when it is interactive.",
    )


def failed(node: str, command: Command, found: str) -> SparkserveError:
    """The error for a command that did not do its work."""
    return SparkserveError(
        "NODE.COMMAND",
        expected=f"success of: {command.line()[:200]}",
        found=found,
        where=node,
        do=f"Run that command on {node} by hand to see more.",
    )


@dataclass(frozen=True)
class Local:
    """Runs commands on this machine, whatever the node's name."""

    allow: Safety = Safety.READS_HOSTS

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`."""
        guard(node, command, self.allow)
        return _execute(node, command, command.argv, feed=feed)

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """Nothing to do: the store is the same."""

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """See `Runner.lines`."""
        guard(node, command, self.allow)
        return _lines(node, command, command.argv)

    def close(self) -> None:
        """Nothing to do: `run` returns when its command has ended."""


class SSH:
    """Runs commands on the Hosts of an ssh_config, a file or its text, all for a node over one connection.

    A program that may stay started does, until the end or an error.
    `env` is for the ssh here, over this process's: its PATH says which ssh. The files of its connections are
    in a folder whose path is `near` and a random end. A context manager: leaving it ends the connections, so
    that no process stays behind.
    """

    def __init__(
        self,
        config: Path | str,
        allow: Safety = Safety.READS_HOSTS,
        env: Mapping[str, str] | None = None,
        near: Path | None = None,
    ) -> None:
        self.allow = allow
        self._env = {**os.environ, **(env or {})}
        # Two reasons for a folder of its own in /run: a control socket's path has at most 108 characters, and
        # Nix splits its ssh options at spaces, which a checkout's path may have.
        near = near or Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / "sparkserve/ssh"
        near.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._control = Path(tempfile.mkdtemp(prefix=f"{near.name}-", dir=near.parent))
        self.config = self._control / "config"
        if isinstance(config, str):
            self.config.write_text(config)
        else:
            self.config.symlink_to(config.resolve())
        self._used: set[str] = set()
        self._running: set[subprocess.Popen[str]] = set()
        self._residents: dict[tuple[str, Command], Resident] = {}
        self._too_old: set[tuple[str, Command]] = set()
        self._closed = False

    def __enter__(self) -> SSH:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`."""
        self._admit(node, command)
        result = self._resident(node, command) if command.resident and feed is None else None
        if result is None:
            argv = commands.ssh(str(self.config), str(self._control), node, command)
            result = _execute(node, command, argv, feed=feed, env=self._env, running=self._running)
        # ssh may have no word for it, or one that we do not know, as of a bad line in the owner's settings.
        if result.code == SSH_FAILED and (not result.out or _says_ssh(result.err)):
            raise _unreachable(node, result.err)
        return result

    def _admit(self, node: str, command: Command) -> None:
        """Refuse what is above our safety class, and everything once we are closed, as after Ctrl-C."""
        guard(node, command, self.allow)
        if self._closed:
            raise failed(node, command, "an end of the connection before it began")
        self._used.add(node)

    def _resident(self, node: str, command: Command) -> Result | None:
        """How `command` ends in what stays started of its closure; None when that is too old to stay."""
        key = node, commands.stay(command.argv[0])
        if key in self._too_old:
            return None
        found = self._residents.get(key)
        if found is None or not found.running:
            if found is not None:
                self._end(found)
            found = self._residents[key] = self._stay(*key)
        try:
            return Result(*found.ask(command.argv, command.timeout_s))
        except TimeoutError:
            raise failed(node, command, f"no end after {command.timeout_s:.0f} s") from None
        except NoAnswerError as ended:
            # One that a signal ended, as ours at a `close`, would have stayed.
            if ended.started or ended.code < 0 or ended.code == SSH_FAILED:
                return Result(ended.code, err=ended.err)
            self._too_old.add(key)
            return None

    def _stay(self, node: str, command: Command) -> Resident:
        argv = commands.ssh(str(self.config), str(self._control), node, command)
        # stderr in a file: nobody reads it before the end.
        err = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - its owner closes it
        return Resident(_start(argv, self._env, self._running, stdin=subprocess.PIPE, stderr=err), err)

    def _end(self, resident: Resident) -> None:
        resident.end()
        self._running.discard(resident.process)

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """See `Runner.send`."""
        command = commands.copy_closure(node, str(path))
        self._admit(node, command)
        env = {**nix.environment(), **self._path(), "NIX_SSHOPTS": commands.copy_options(str(self.config))}
        result = _execute(node, command, command.argv, env=env, on_line=on_line, running=self._running)
        if result.code == 0:
            return
        if _says_ssh(result.err):
            raise _unreachable(node, result.err)
        raise failed(node, command, f"exit code {result.code}: {_end(result.err)}")

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """See `Runner.lines`."""
        self._admit(node, command)
        argv = commands.ssh(str(self.config), str(self._control), node, command)
        return _lines(node, command, argv, env=self._env, running=self._running)

    @contextmanager
    def forward(self, node: str, host: str, port: int) -> Iterator[int]:
        """A port of this machine's loopback that leads to `host`:`port` as seen from `node`.

        It ends with the body, and with this process, however that ends. Raises as `run`.
        """
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            ours: int = free.getsockname()[1]
        command = commands.until_stdin_ends()
        guard(node, command, self.allow)
        argv = commands.ssh_forward(str(self.config), node, ours, host, port, command)
        lines = _lines(node, command, argv, env=self._env, running=self._running, first_s=FORWARD_S)
        with closing(lines):
            next(lines, None)
            yield ours

    def close(self) -> None:
        """See `Runner.close`."""
        self._closed = True
        for process in list(self._running):
            process.terminate()
        for each in list(self._residents.values()):
            self._end(each)
        for node in sorted(self._used):
            argv = commands.ssh_close(str(self.config), str(self._control), node)
            with suppress(subprocess.TimeoutExpired):  # an ssh that hangs reads the owner's settings
                subprocess.run(
                    argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=self._env, timeout=2
                )
        shutil.rmtree(self._control, ignore_errors=True)

    def _path(self) -> dict[str, str]:
        # Nix calls ssh by its name.
        return {"PATH": self._env.get("PATH", os.defpath)}


@dataclass
class Recorded:
    """Runs nothing: answers from `answers` (by node and line, else by line), and keeps what was asked.

    A command without an answer ends with 0 and no output.
    """

    answers: Mapping[tuple[str, str] | str, Result] = field(default_factory=dict)
    allow: Safety = Safety.STOPS_SERVING
    asked: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        """See `Runner.run`."""
        guard(node, command, self.allow)
        line = command.line() if feed is None else f"{' '.join(feed)} | {command.line()}"
        with self._lock:
            self.asked.append((node, line))
        return self.answers.get((node, line)) or self.answers.get(line) or Result(0)

    def send(self, node: str, path: Path, on_line: Callable[[str], None] = lambda line: None) -> None:
        """See `Runner.send`."""
        check(self, node, commands.copy_closure(node, str(path)))

    def lines(self, node: str, command: Command) -> Generator[str, None, None]:
        """See `Runner.lines`: here they come all at once."""
        yield from check(self, node, command).splitlines()

    def close(self) -> None:
        """Nothing runs."""

    def of(self, node: str) -> list[str]:
        """The lines that `node` was asked to run, in order."""
        return [line for name, line in self.asked if name == node]


def guard(node: str, command: Command, allow: Safety) -> None:
    """Raise `NODE.SAFETY` when `command` may do more than `allow`."""
    if command.safety > allow:
        raise SparkserveError(
            "NODE.SAFETY",
            expected=f"a command that at most {_words(allow)}",
            found=f"one that {_words(command.safety)}: {command.line()[:200]}",
            where=node,
            do="This is a defect of sparkserve: the caller must ask for a runner that may.",
        )


def _execute(
    node: str,
    command: Command,
    argv: Sequence[str],
    *,
    feed: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    running: set[subprocess.Popen[str]] | None = None,
) -> Result:
    """Run `argv` on this machine for `command`; while it runs it is in `running`."""
    source = None if feed is None else subprocess.Popen(feed, stdout=subprocess.PIPE)
    stdin = subprocess.DEVNULL if source is None else source.stdout
    process = _start(argv, env, running, stdin=stdin, stderr=subprocess.PIPE)
    timer = threading.Timer(command.timeout_s, process.kill)
    timer.start()
    try:
        if source is not None and source.stdout is not None:
            source.stdout.close()
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - for mypy
        with ThreadPoolExecutor(1) as reader:
            out = reader.submit(process.stdout.read)
            lines = []
            for line in process.stderr:
                lines.append(line)
                if on_line is not None:
                    on_line(line.rstrip())
        code = process.wait()
        if code == -signal.SIGKILL and not timer.is_alive():
            raise failed(node, command, f"no end after {command.timeout_s:.0f} s")
        return Result(code, out.result(), "".join(lines))
    finally:
        timer.cancel()
        for each in (process, source):
            if each is not None and each.poll() is None:
                each.kill()
                each.wait()
        if running is not None:
            running.discard(process)


def _start(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    running: set[subprocess.Popen[str]] | None,
    *,
    stdin: IO[Any] | int | None,
    stderr: IO[Any] | int,
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        env=env,
        # Ctrl-C goes to us alone, and we stop it: else the shared connection would die with one command.
        start_new_session=True,
    )
    if running is not None:
        running.add(process)
    return process


def _lines(
    node: str,
    command: Command,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    running: set[subprocess.Popen[str]] | None = None,
    first_s: float = threading.TIMEOUT_MAX,
) -> Generator[str, None, None]:
    """As `_execute`, for `Runner.lines`. The first line must come within `first_s`."""
    # stderr in a file: nobody reads it before the end.
    with tempfile.TemporaryFile("w+", errors="replace") as err:
        process = _start(argv, env, running, stdin=subprocess.PIPE, stderr=err)
        timer = threading.Timer(first_s, process.kill)
        came = False
        timer.daemon = True  # else a process that ends without closing this waits for it
        timer.start()
        try:
            assert process.stdout is not None  # noqa: S101 - for mypy
            for line in process.stdout:
                timer.cancel()
                came = True
                yield line.rstrip("\n")
            code = process.wait()
        finally:
            timer.cancel()
            process.terminate()
            process.communicate()  # closes its pipes and waits
            if running is not None:
                running.discard(process)
        err.seek(0)
        said = err.read()
    if code == SSH_FAILED and (not came or _says_ssh(said)):
        raise _unreachable(node, said)
    if code == -signal.SIGKILL:
        raise failed(node, command, f"no word within {first_s:.0f} s")
    if code != 0:
        raise failed(node, command, f"exit code {code}: {_end(said)}")


def _unreachable(node: str, err: str) -> SparkserveError:
    return SparkserveError(
        "NODE.UNREACHABLE",
        expected="an SSH login",
        found=_end(err),
        where=node,
        do="Look whether it is on and on its network: ./sparkserve status asks all nodes of a fleet.",
    )


def _says_ssh(err: str) -> bool:
    """Whether ssh itself, not the command, gave up: both can end with 255."""
    own = (
        "ssh: ",
        "Connection ",
        "Connection to ",
        "kex_",
        "Host key ",
        "Timeout, ",
        "client_loop",
        "mux_client",
    )
    return any(line.startswith(own) or "Permission denied (" in line for line in err.splitlines())


def _words(safety: Safety) -> str:
    return safety.name.lower().replace("_", " ")


def _end(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-4:]) or "no output"
