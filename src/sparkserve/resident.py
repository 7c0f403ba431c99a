"""A program that stays started on a node and runs the commands of its closure there: both ends.

A deployment runs some thirty commands of one program, and most of the time of each is Python reading its
modules: a quarter of a second of a core. Each runs in a child, forked when the modules are there, with
streams and an exit code of its own. So it is what it is when it is started alone: it holds and inherits
locks, becomes another program, and dies by itself.

A line of JSON asks, which is the argv, and one answers. The first line says that it has started.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

_STARTED = "started\n"


class Answer(NamedTuple):
    """How a command ended: exit code, as a shell gives it, and what it wrote."""

    code: int
    out: str
    err: str


class NoAnswerError(Exception):
    """It is there no more, for a reason that `code` and `err` may say. `started` is whether it ever was."""

    def __init__(self, code: int, err: str, *, started: bool) -> None:
        self.code = code
        self.err = err
        self.started = started


class Resident:
    """The deployer's end: `process` has pipes to it, by whatever way, and `err` is the file of its stderr."""

    def __init__(self, process: subprocess.Popen[str], err: IO[str]) -> None:
        self.process = process
        self._err = err
        self._started = False
        self._one = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether it can still be asked."""
        return self.process.poll() is None

    def ask(self, argv: Sequence[str], timeout_s: float) -> Answer:
        """Run `argv` there. Raises TimeoutError, and `NoAnswerError`.

        After either it runs no more: an answer that came late would be taken for another's.
        """
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.process.kill()

        with self._one:
            timer = threading.Timer(timeout_s, give_up)
            timer.start()
            try:
                line = self._answer(argv)
            finally:
                timer.cancel()
            if line.endswith("\n"):
                return Answer(*json.loads(line))
            said = self._end()
            if late.is_set():
                raise TimeoutError
            raise NoAnswerError(self.process.returncode, said, started=self._started)

    def end(self) -> None:
        """End it, also while it is asked."""
        self.process.terminate()
        with self._one:
            self._end()

    def _end(self) -> str:
        """Close what is open; what it said on stderr."""
        self.process.communicate()
        if self._err.closed:
            return ""
        with self._err as file:
            file.seek(0)
            return file.read()

    def _answer(self, argv: Sequence[str]) -> str:
        """The line that answers; without its end when there is none."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101 - for mypy
        try:
            if not self._started and stdout.readline() != _STARTED:
                return ""
            self._started = True
            stdin.write(json.dumps(list(argv)) + "\n")
            stdin.flush()
        except OSError:
            return ""
        return stdout.readline()


def serve(run: Callable[[list[str]], object]) -> None:
    """The node's end: let `run` run each command that stdin asks for, one after the other, until it ends.

    `run` may end as a program does. stdout belongs to the answers: nothing else may write there.
    """
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w") as answers:
        answers.write(_STARTED)
        answers.flush()
        for line in sys.stdin:
            answers.write(json.dumps(_child(run, json.loads(line), answers.fileno())) + "\n")
            answers.flush()


def _child(run: Callable[[list[str]], object], argv: list[str], answers: int) -> Answer:
    """How `argv` ends in a child. Files in memory take what it writes: a pipe that is full would hold it."""
    with os.fdopen(os.memfd_create("out"), "r+b") as out, os.fdopen(os.memfd_create("err"), "r+b") as err:
        child = os.fork()
        if child == 0:
            os.close(answers)  # else whoever reads them hears of our end only when the child ends too
            os._exit(_run(run, argv, out, err))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return Answer(128 - code if code < 0 else code, _text(out), _text(err))


def _run(run: Callable[[list[str]], object], argv: list[str], out: IO[Any], err: IO[Any]) -> int:
    """In the child: `run` with these streams, and no input; the exit code."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    try:
        run(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
