"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.fleet import CHOSEN, DEFAULT_FLEET

if TYPE_CHECKING:
    from collections.abc import Callable


def complete(known: Callable[[], list[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What Tab offers for an option or argument: the words of `known`, which is called at Tab only."""
    return lambda _context, _parameter, begun: [word for word in known() if word.startswith(begun)]


def fleets() -> list[str]:
    """The names of all fleets."""
    from sparkserve.fleet import names

    return names.known()


fleet = click.option(
    "--fleet",
    default=DEFAULT_FLEET,
    show_default=True,
    envvar=CHOSEN,
    show_envvar=True,
    shell_complete=complete(fleets),
    help="A folder in hosts/.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
