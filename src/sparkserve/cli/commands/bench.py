"""`sparkserve bench`: how fast it is, in figures that decide."""

from __future__ import annotations

import importlib
import pkgutil

import click

from sparkserve import cli

_OTHERS = "bench_"  # sparkserve/cli/bench_NAME.py with a `command` is the subcommand NAME


class _Bench(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        found = (module.name for module in pkgutil.iter_modules(cli.__path__))
        others = {name.removeprefix(_OTHERS) for name in found if name.startswith(_OTHERS)}
        return sorted({*super().list_commands(ctx), *others})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in self.list_commands(ctx):
            return found
        module = importlib.import_module(f"{cli.__name__}.{_OTHERS}{cmd_name}")
        command: click.Command = module.command
        return command


@click.group(
    cls=_Bench,
    epilog="Example: ./sparkserve bench compare new.json --against old.json",
)
def command() -> None:
    """Measure speed: in boots, with distinct prompts, on a quiet machine."""
