"""`sparkserve fleet`: the fleets of this checkout and their plans."""

from __future__ import annotations

from pathlib import Path

import click

from sparkserve.cli import options
from sparkserve.fleet import CHOSEN, DEFAULT_FLEET

name_argument = click.argument(
    "name", default=DEFAULT_FLEET, envvar=CHOSEN, shell_complete=options.complete(options.fleets)
)


@click.group(
    epilog="""Examples:

    ./sparkserve fleet new my-desk

    ./sparkserve fleet show my-desk

    ./sparkserve fleet plan my-desk --node spark-0 | jq .engine

A fleet is a folder in hosts/ with a fleet.nix, the file that you edit. NAME is the value of
SPARKSERVE_FLEET when left out, else local-triangle."""
)
def command() -> None:
    """Make fleets, and see what their files mean."""


@command.command("new", epilog="Example: ./sparkserve fleet new my-desk")
@click.argument("name")
def new(name: str) -> None:
    """Write hosts/NAME/fleet.nix and let git know it."""
    from sparkserve.fleet.new import create
    from sparkserve.terminal import console

    create(name)
    console.print(f"hosts/{name}/fleet.nix is yours to edit; then: ./sparkserve fleet show {name}")


@command.command("list", epilog="Example: ./sparkserve fleet list --json")
@options.as_json
def list_(as_json: bool) -> None:
    """List the fleets."""
    from sparkserve.fleet import names
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    fleets = {name: not names.untracked(name) for name in names.known()}
    if as_json:
        print_json([{"name": name, "tracked": tracked} for name, tracked in fleets.items()])
        return
    print_table(("fleet", "git"), [(name, "tracked" if ok else "untracked") for name, ok in fleets.items()])


@command.command("show", epilog="Example: ./sparkserve fleet show local-single")
@name_argument
@options.as_json
def show(name: str, as_json: bool) -> None:
    """Show nodes, endpoint and engine of a fleet."""
    from sparkserve.fleet import plans
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    loaded = plans.load(name)
    head = loaded[0]
    if as_json:
        nodes = head.fleet.model_dump(mode="json")["nodes"]
        serving = {"endpoint": head.serving.endpoint, "model": head.serving.model}
        print_json({"fleet": name, **serving, "nodes": nodes})
        return
    print_table(
        ("rank", "node", "address"), [(str(n.rank), n.name, str(n.address)) for n in head.fleet.nodes]
    )
    print_table(
        ("setting", "value"),
        [
            ("model", head.serving.model),
            ("endpoint", head.serving.endpoint),
            ("engine", f"{head.engine.package} with {head.engine.model}"),
            ("arguments", " ".join(head.engine.args)),
            ("environment", " ".join(f"{key}={value}" for key, value in head.engine.env.items())),
            ("gates", " ".join(head.gates) or "none"),
        ],
    )


@command.command("plan", epilog="Example: ./sparkserve fleet plan --node spark-0")
@name_argument
@click.option("--node", help="Print this node's plan only.")
@click.option("--json", is_flag=True, expose_value=False, help="Accepted everywhere; a plan is always JSON.")
def plan(name: str, node: str | None) -> None:
    """Print the plans of a fleet as JSON, by node."""
    from sparkserve.fleet import names, plans
    from sparkserve.output import print_json

    values = plans.evaluate(name)
    if node is not None and node not in values:
        raise names.no_node(name, values, node)
    print_json(values if node is None else values[node])


@command.command(
    "draw",
    epilog="""Examples:

    ./sparkserve fleet draw --output fleet.svg

    ./sparkserve fleet draw --no-digests --output docs/closure.svg

It shows the files as they are now and builds nothing. What is not built has no size and no digest.""",
)
@name_argument
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    default="-",
    help="Write here, not to stdout.",
)
@click.option("--digests/--no-digests", default=True, help="Digests and fleet id change with every edit.")
def draw(name: str, output: Path, digests: bool) -> None:
    """Draw a fleet and the closure that its nodes run, as SVG."""
    from sparkserve.fleet import draw as drawing
    from sparkserve.fleet.picture import collect
    from sparkserve.output import write_file
    from sparkserve.terminal import console

    picture = collect(name, digests=digests)
    if str(output) == "-":
        click.echo(drawing.draw(picture), nl=False)
    else:
        write_file(output, drawing.draw(picture))
    sizes = [layer.size for node in picture.nodes for layer in node.layers]
    if None in sizes or (digests and picture.fleet_id is None):
        console.print("Sizes or digests of what is not built are missing: ./sparkserve up builds it.")


@command.command("schema", epilog="Example: ./sparkserve fleet schema > docs/plan.schema.json")
def schema() -> None:
    """Print the JSON Schema of a plan."""
    from sparkserve import plan
    from sparkserve.output import print_json

    print_json(plan.schema())
