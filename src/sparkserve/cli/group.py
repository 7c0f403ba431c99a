"""The command group: finds commands by their file."""

from __future__ import annotations

import importlib
import pkgutil

import click

from sparkserve import __version__
from sparkserve.cli import commands


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
