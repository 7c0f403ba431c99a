"""Entry point: finds commands by their file, prints errors in one form, sets the exit code."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import sys
from typing import Any

import click

from sparkserve import __version__
from sparkserve.cli import commands
from sparkserve.errors import SparkserveError, not_root
from sparkserve.output import console, print_error

EXIT_INTERRUPTED = 130


class CommandFolder(click.Group):
    """A group whose members are the modules of `commands`, imported only when they are called.

    Importing all of them would cost every call the time of the slowest.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.group(
    cls=CommandFolder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with: ./sparkserve up   then: ./sparkserve smoke   and: ./sparkserve check",
)
@click.version_option(__version__, "-V", "--version", prog_name="sparkserve")
def cli() -> None:
    """Serve one model from your Sparks, with every byte pinned."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 good, 2 wrong usage, 130 interrupted, else the code of the error's id (`errors.EXIT_CODES`).
    """
    arguments = sys.argv[1:] if argv is None else argv
    # systemd and `timeout` stop with SIGTERM; what Ctrl-C cleans up must be cleaned up then too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code: Any = cli.main(args=arguments, prog_name="sparkserve", standalone_mode=False)
    except SparkserveError as error:
        print_error(error, as_json="--json" in arguments)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        console.print("Interrupted.")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # `sparkserve logs | head`: the reader left. Close stderr so that Python does not complain at exit.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        refused = _refused(error)
        print_error(refused, as_json="--json" in arguments)
        sys.exit(refused.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _refused(error: OSError) -> SparkserveError:
    """The error for what this machine refuses and no command has words of its own for."""
    where = str(error.filename or "this machine")
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
