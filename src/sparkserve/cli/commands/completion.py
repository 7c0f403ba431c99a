"""`sparkserve completion`: Tab completes commands, options and names."""

from __future__ import annotations

import click


@click.command(
    epilog="""Examples:

    ./sparkserve completion bash > ~/.local/share/bash-completion/completions/sparkserve

    ./sparkserve completion fish | source"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from sparkserve.cli.group import cli

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices above are click's own
    click.echo(kind(cli, {}, "sparkserve", "_SPARKSERVE_COMPLETE").source())
