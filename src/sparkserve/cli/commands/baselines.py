"""`sparkserve baselines`: what was promoted, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from sparkserve.deploy.baseline import Baseline


def _names() -> list[str]:
    from sparkserve.deploy import baseline

    return [each.name for each in baseline.known()]


@click.group(
    epilog="""Examples:

    ./sparkserve baselines list

    ./sparkserve baselines show r7

docs/baselines.md says what is in one."""
)
def command() -> None:
    """Show what was promoted, when, why, and what it rests on."""


@command.command(
    "list",
    epilog="""Examples:

    ./sparkserve baselines list

    ./sparkserve baselines list --json | jq -r '.[-1].name'

The newest of a fleet comes last, and is what is desired of it. Exit code: 103 for a file in
manifests/baselines that is no baseline.""",
)
@options.as_json
def list_(as_json: bool) -> None:
    """List the baselines of all fleets, oldest first."""
    from sparkserve.deploy import baseline
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    found = baseline.known()
    if as_json:
        print_json([each.model_dump(mode="json", exclude={"pins"}) for each in found])
        return
    print_table(
        ("name", "fleet", "promoted", "fleet id", "why"),
        [(each.name, each.fleet, each.promoted_at, each.fleet_id[:12], each.why) for each in found],
    )


@command.command("show", epilog="Example: ./sparkserve baselines show r7 --json | jq .pins.harness")
@click.argument("name", metavar="NAME", shell_complete=options.complete(_names))
@options.as_json
def show(name: str, as_json: bool) -> None:
    """Show one baseline; with --json its whole file."""
    from sparkserve.deploy import baseline
    from sparkserve.output import print_json

    known = {each.name: each for each in baseline.known()}
    if (found := known.get(name)) is None:
        there = ", ".join(known) or "none"
        raise click.BadParameter(f"no baseline {name}; there are: {there}", param_hint="NAME")
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        _print(found)


def _print(found: Baseline) -> None:
    from sparkserve.terminal import console, print_table

    after = f", after {found.previous}" if found.previous else ""
    console.print(f"{found.name} of {found.fleet}, promoted at {found.promoted_at}{after}: {found.why}")
    console.print(f"fleet id {found.fleet_id}")
    print_table(
        ("node", "generation", "kept", "kernel", "driver", "closure"),
        [
            (
                each.name, str(each.generation), each.kept_at,
                each.observed.kernel, each.observed.driver, each.closure,
            )
            for each in found.nodes
        ],
    )  # fmt: skip
    print_table(
        ("gate", "evidence", "says"),
        [(each.gate, "quick" if each.quick else "whole", each.summary) for each in found.gates],
    )
    if found.bench is not None:
        print_table(
            ("point", "metric", "boots", "median", "95 %"),
            [
                (
                    each.point, each.metric, str(each.boots), f"{each.median:.4g}",
                    "-" if each.low is None or each.high is None else f"{each.low:.4g} to {each.high:.4g}",
                )
                for each in found.bench.references
            ],
        )  # fmt: skip
    pins = sum(len(each) for each in found.pins.values())
    console.print(f"{pins} pins; adapters: {', '.join(each.name for each in found.adapters) or 'none'}")
    for warning in found.warnings:
        console.print(f"! {warning}")


@command.command("schema", epilog="Example: ./sparkserve baselines schema > docs/baseline.schema.json")
def schema() -> None:
    """Print the JSON Schema of a baseline."""
    from sparkserve.deploy import baseline
    from sparkserve.output import print_json

    print_json(baseline.schema())
