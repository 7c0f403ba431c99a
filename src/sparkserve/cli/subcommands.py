"""A group of commands some of which have a file each."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import click

from sparkserve import cli


class Subcommands(click.Group):
    """A group that also has the `command` of every sparkserve/cli/PREFIX_NAME.py, as the subcommand NAME.

    It is imported only when it is called.
    """

    def __init__(self, *given: Any, prefix: str, **attributes: Any) -> None:
        super().__init__(*given, **attributes)
        self.prefix = f"{prefix}_"

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = (module.name for module in pkgutil.iter_modules(cli.__path__))
        others = {name.removeprefix(self.prefix) for name in found if name.startswith(self.prefix)}
        return sorted({*super().list_commands(ctx), *others})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in self.list_commands(ctx):
            return found
        module = importlib.import_module(f"{cli.__name__}.{self.prefix}{cmd_name}")
        command: click.Command = module.command
        return command
