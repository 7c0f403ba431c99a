"""Entry point: signals, standard streams, errors in one form, the exit code.

It imports next to nothing before its signal handlers stand: Ctrl-C comes early too.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from sparkserve import interrupts

if TYPE_CHECKING:
    import click

    from sparkserve.errors import SparkserveError

EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 good, 2 wrong usage, 128 + N ended by signal N (130 Ctrl-C, 143 SIGTERM, 141 nobody reads
    its output), else the code of the error's id (`errors.EXIT_CODES`).
    """
    code = 0
    try:
        interrupts.listen()
        _open_standard_streams()
        code = _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt as error:
        code = getattr(error, "exit_code", 128 + signal.SIGINT)
    except BrokenPipeError:
        code = EXIT_BROKEN_PIPE
    except OSError:  # no way to print: the terminal is gone
        code = code or 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # What is left would fail once more when Python exits, which then complains.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if argv is None:  # else whoever called goes on, and what it starts would inherit this
        interrupts.ignore()
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open /dev/null for a closed stdin, stdout or stderr: else the next file opened takes its place."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    for out in (1, 2):
        # bash keeps its script open in place of a closed stream, and passes it on.
        if fcntl.fcntl(out, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            os.dup2(fd, out)
    os.close(fd)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - a descriptor, for ever
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _run(arguments: list[str]) -> int:
    """Run a command, print its error, return the exit code. Raises what `main` has a code for."""
    import click

    from sparkserve.cli.group import cli
    from sparkserve.errors import SparkserveError
    from sparkserve.output import print_error

    try:
        code: Any = cli.main(args=arguments, prog_name="sparkserve", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SparkserveError as error:
        print_error(error, as_json="--json" in arguments)
        return error.exit_code
    except click.ClickException as error:
        if "--json" in arguments:
            print_error(_usage(error), as_json=True)
        else:
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        sys.stderr.write("Interrupted.\n")
        raise (error.__cause__ if isinstance(error, click.Abort) else error) or KeyboardInterrupt from None
    except SystemExit as error:
        if error.code == 1:  # how click ends when a pipe breaks
            raise BrokenPipeError from None
        raise
    except BrokenPipeError:
        raise
    except OSError as error:
        refused = _refused(error)
        print_error(refused, as_json="--json" in arguments)
        return refused.exit_code


def _usage(error: click.ClickException) -> SparkserveError:
    """The error for a command line that no command takes."""
    from sparkserve.errors import SparkserveError

    context = getattr(error, "ctx", None)
    command = context.command_path if context else "sparkserve"
    return SparkserveError(
        "CLI.USAGE",
        expected="a command line as --help shows it",
        found=error.format_message(),
        where=command,
        do=f"Run {command} --help.",
    )


def _refused(error: OSError) -> SparkserveError:
    """The error for what this machine refuses and no command has words of its own for."""
    from sparkserve import disk
    from sparkserve.errors import SparkserveError, not_root

    where = str(error.filename or "this machine")
    if disk.met(error):
        return disk.full(where)
    if isinstance(error, PermissionError):
        return not_root(where)
    return SparkserveError(
        "HOST.SYSTEM",
        expected="files that can be read and written, and programs that can be run",
        found=error.strerror or str(error),
        where=where,
        do="Repair that, or install what is missing, and run the same command.",
    )


if __name__ == "__main__":
    main()
