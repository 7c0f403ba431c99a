"""`sparkserve deploy`: moves a fleet to another closure, as one transaction over its nodes."""

from __future__ import annotations

import click

from sparkserve.cli import deploy_member


@click.group(hidden=True)
def command() -> None:
    """Move a fleet to another closure."""


command.add_command(deploy_member.group)
