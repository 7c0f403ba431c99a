"""Options that several commands share."""

from __future__ import annotations

import click

from sparkserve.fleet import DEFAULT_FLEET

fleet = click.option("--fleet", default=DEFAULT_FLEET, show_default=True, help="A folder in hosts/.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
