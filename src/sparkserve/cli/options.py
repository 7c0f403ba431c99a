"""Options that several commands share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.errors import SparkserveError
from sparkserve.fleet import CHOSEN, DEFAULT_FLEET

if TYPE_CHECKING:
    from collections.abc import Callable


def complete(known: Callable[[], list[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What Tab offers for an option or argument: the words of `known`, which is called at Tab only.

    None when `known` cannot say: who pressed Tab asked for no error in the middle of a line.
    """

    def offered(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        with suppress(SparkserveError):
            return [word for word in known() if word.startswith(begun)]
        return []

    return offered


def fleets() -> list[str]:
    """The names of all fleets."""
    from sparkserve.fleet import names

    return names.known()


def _profiles() -> list[str]:
    from sparkserve.pins import profile

    return profile.names()


def _folders_or_urls(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for place in given:
        if "://" not in place and not Path(place).is_dir():
            raise click.BadParameter(f"{place} is neither a folder nor a URL.")
    return given


def number(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """The callback of an option with a range: NaN is in every one, and nothing exceeds it."""
    if value is not None and value != value:
        raise click.BadParameter("not a number")
    return value


profiles = click.argument("profiles", nargs=-1, metavar="[PROFILE]...", shell_complete=complete(_profiles))
given = click.option(
    "--from",
    "given",
    multiple=True,
    callback=_folders_or_urls,
    metavar="DIR_OR_URL",
    help="Look for wheels and debs here first. Repeatable.",
)
mirror = click.option(
    "--mirror", metavar="URI", help="A Debian mirror in place of the one this machine uses."
)
fleet = click.option(
    "--fleet",
    default=DEFAULT_FLEET,
    show_default=True,
    envvar=CHOSEN,
    show_envvar=True,
    shell_complete=complete(fleets),
    help="A folder in hosts/.",
)
endpoint = click.option("--endpoint", metavar="URL", help="Not a fleet, but whoever answers there.")
model = click.option("--model", metavar="NAME", help="The model's name at --endpoint.")
api_key_file = click.option(
    "--api-key-file",
    type=click.Path(path_type=Path),
    envvar="SPARKSERVE_API_KEY_FILE",
    show_envvar=True,
    help="The endpoint's key, if it asks for one. [serving.apiKeyFile of the fleet]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def foreign(endpoint: str | None, model: str | None) -> tuple[str, str] | None:
    """URL and model of an endpoint that is no fleet of ours; None where neither was named.

    Raises `click.UsageError` for one without the other, and beside --fleet.
    """
    if endpoint is None and model is None:
        return None
    if endpoint is None or model is None:
        raise click.UsageError("--endpoint and --model go together")
    if click.get_current_context().get_parameter_source("fleet") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("either --fleet or --endpoint")
    return endpoint.rstrip("/"), model
