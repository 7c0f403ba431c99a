"""`sparkserve memory`: what a node's memory is planned for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from sparkserve.cli import options
from sparkserve.cli.commands.fleet import name_argument

_OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
# Rules that are switched off, or a node that is another, would give figures of no fleet.
_NONE = ("_module", "assertions", "node")


class Setting(click.ParamType[tuple[str, Any]]):
    """`OPTION=VALUE`; a value that is no JSON is a string."""

    name = "option=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """The option and its value."""
        option, equals, text = str(value).partition("=")
        if not equals or not _OPTION.fullmatch(option):
            self.fail(f"{value!r} is not OPTION=VALUE, such as engine.prefillChunk=1024", param, ctx)
        if option.partition(".")[0] in _NONE:
            self.fail(f"{option} is no option of a fleet, but of how it is evaluated", param, ctx)
        try:
            return option, json.loads(text, parse_constant=_nothing, parse_float=_number)
        # Brackets by the thousand are none of ours either.
        except (ValueError, RecursionError):
            return option, text


def _nothing(name: str) -> None:
    """NaN and Infinity are of Python's JSON only. Raises ValueError."""
    raise ValueError(name)


def _number(text: str) -> float:
    """1e6 is the integer that it says. Raises ValueError for more than Nix counts to."""
    value = float(text)
    if abs(value) >= 1 << 63:
        raise ValueError(text)
    return int(value) if value.is_integer() else value


@click.group(
    epilog="""Examples:

    ./sparkserve memory explain tp3-triangle

    ./sparkserve memory explain tp4-switched --set engine.maxRunning=20 --node spark-0

docs/memory.md compares the model with what owners of Sparks measured."""
)
def command() -> None:
    """See what a node's memory is planned for."""


@command.command(
    "explain",
    epilog="""Examples:

    ./sparkserve memory explain tp3-triangle

    ./sparkserve memory explain tp4-switched --output memory.svg

    ./sparkserve memory explain tp3-triangle --set engine.prefillChunk=256 --set engine.context=262144

With --set the fleet is evaluated with other values; no file is changed. A fleet that does not fit is
refused, with its terms.""",
)
@name_argument
@click.option("--node", help="Only this node.")
@click.option(
    "--set", "settings", type=Setting(), multiple=True, help="Another value of an option; can be repeated."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Draw it into this SVG file.")
@options.as_json
def explain(
    name: str, node: str | None, settings: tuple[tuple[str, Any], ...], output: Path | None, as_json: bool
) -> None:
    """What each node's memory is for, and what is left before the guard kills."""
    from sparkserve.fleet import names, plans
    from sparkserve.memory import draw
    from sparkserve.memory import explain as explained
    from sparkserve.output import print_json, write_file
    from sparkserve.terminal import print_table

    if output is not None and output.suffix not in ("", ".svg"):  # /dev/stdout has none
        raise click.BadParameter(f"{str(output)!r} does not end in .svg", param_hint=["--output"])
    found = plans.load(name, dict(settings))
    chosen = [plan for plan in found if node in (None, plan.node.name)]
    if not chosen:
        raise names.no_node(name, (plan.node.name for plan in found), str(node))
    shared = explained.collect(chosen)
    if output is not None:
        write_file(output, draw.draw(name, shared))
    if as_json:
        print_json({n: each.memory.model_dump(mode="json") for each in shared for n in each.nodes})
        return
    for each in shared:
        columns = (", ".join(each.nodes), "GiB", "bytes", "share", "when", "why")
        print_table(columns, explained.rows(each))
