"""`sparkserve nix`: Nix itself."""

from __future__ import annotations

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    epilog="Examples:  ./sparkserve nix flake show   ./sparkserve nix store gc",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Run Nix with this project's settings, whatever nix.conf says."""
    import os

    from sparkserve import nix

    os.execvpe("nix", ["nix", *arguments], nix.environment())  # noqa: S606 - Nix takes this process's place
