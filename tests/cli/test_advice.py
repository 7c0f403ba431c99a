"""What errors and pages tell people to type is there."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sparkserve.cli.group import cli

ROOT = Path(__file__).parents[2]


def test_every_command_that_we_name_exists() -> None:
    context = click.Context(cli)
    seen = set()
    for file in [*(ROOT / "src/sparkserve").rglob("*.py"), *(ROOT / "docs").glob("*.md")]:
        for first, second in re.findall(r"\./sparkserve ([a-z][a-z-]*)(?: ([a-z]+))?", file.read_text()):
            command = cli.get_command(context, first)
            assert command is not None, f"{file}: ./sparkserve {first}"
            if isinstance(command, click.Group) and (second or not command.invoke_without_command):
                assert command.get_command(context, second), f"{file}: ./sparkserve {first} {second}"
            seen.add(first)
    assert seen > {"up", "down", "fleet", "pins", "logs"}
