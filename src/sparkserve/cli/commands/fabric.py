"""`sparkserve fabric`: the cables of a fleet, as planned and as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options
from sparkserve.fleet import CHOSEN, DEFAULT_FLEET

if TYPE_CHECKING:
    from sparkserve.fabric import cabling
    from sparkserve.plan import Plan

fleet_argument = click.argument(
    "fleet", default=DEFAULT_FLEET, envvar=CHOSEN, shell_complete=options.complete(options.fleets)
)


@click.group(
    epilog="""Examples:

    ./sparkserve fabric plan tp3-triangle

    ./sparkserve fabric plan tp4-ring --output cabling.svg

    ./sparkserve fabric check tp3-triangle --node spark-1

FLEET is the value of SPARKSERVE_FLEET when left out, else local-triangle."""
)
def command() -> None:
    """See which cable goes where, and whether the hosts agree."""


@command.command(
    "plan",
    epilog="""Examples:

    ./sparkserve fabric plan tp3-triangle

    ./sparkserve fabric plan tp4-ring --output cabling.svg

    ./sparkserve fabric plan tp4-ring --json | jq '.peer_hcas'

It evaluates the fleet and asks no host. A rail is what joins ports: a cable, or a switch.""",
)
@fleet_argument
@options.as_json
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw the cabling, as SVG, into this file.",
)
def plan(fleet: str, as_json: bool, output: Path | None) -> None:
    """Print interfaces, addresses, RDMA devices, rank order and the environment of collectives."""
    from sparkserve.fabric import cabling, draw
    from sparkserve.fleet import plans
    from sparkserve.output import print_json, write_file
    from sparkserve.terminal import console, print_table

    loaded = plans.load(fleet)
    if output is not None:
        write_file(output, draw.draw(loaded))
    if as_json:
        print_json(cabling.as_dict(loaded))
        return
    columns = ("rail", "stripe", "node", "port", "interface", "RDMA device", "address", "to")
    print_table(columns, [_row(end) for end in cabling.ends(loaded)])
    click.echo()
    print_table(
        ("rank", "node", "peer", "RDMA devices"),
        [
            (str(each.node.rank), each.node.name, each.fleet.nodes[rank].name, " ".join(devices))
            for each in loaded
            for rank, devices in cabling.hcas(each).items()
        ],
    )
    click.echo()
    print_table(("variable", "value", "nodes"), cabling.shared(loaded))
    if cabling.fabric(loaded[0]).nccl is None:
        console.print(f"The engine of {loaded[0].serving.model} has no NCCL.")


def _row(end: cabling.End) -> tuple[str, ...]:
    link = end.link
    where = f"{link.address}/{link.prefix}"
    numbers = str(link.rail), str(link.stripe)
    return (*numbers, end.plan.node.name, str(link.port), link.interface, link.hca, where, end.peers)


@command.command(
    "check",
    epilog="""Examples:

    ./sparkserve fabric check

    ./sparkserve fabric check tp3-triangle --node spark-1

    cd /nix/var/nix/profiles/sparkserve && bin/sparkserve fabric check --plan plan.json

It changes nothing. The nodes of a laptop fleet that is up are asked; for another one this host is looked at,
which is --node, or the node with the host's name. Exit code: 0 when all is as planned, 63 otherwise.""",
)
@fleet_argument
@click.option("--node", help="This node only.")
@click.option(
    "--plan",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take this host's plan from here, not from a fleet of this checkout.",
)
@options.as_json
@click.pass_context
def check(context: click.Context, fleet: str, node: str | None, file: Path | None, as_json: bool) -> None:
    """Compare interfaces, addresses, MTU, RDMA devices and the way to every peer with the plan."""
    from sparkserve.errors import EXIT_CODES
    from sparkserve.fabric import check as checks
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table

    if file is None and _on_nodes(fleet):
        from sparkserve.fabric import nodes

        found = nodes.ask(fleet, node)
    else:
        from sparkserve.fabric import host

        planned = _plan(fleet, node, file)
        found = {planned.node.name: checks.differences(planned, host.read(), checks.ping(planned))}
    if as_json:
        print_json({name: [each._asdict() for each in wrong] for name, wrong in found.items()})
    elif any(found.values()):
        rows = [(name, *each) for name, wrong in found.items() for each in wrong]
        print_table(("node", "where", "expected", "found", "what to do"), rows)
    else:
        console.print(f"As planned: {', '.join(found)}.")
    if any(found.values()):
        context.exit(EXIT_CODES["FABRIC.CHECK"])


def _on_nodes(fleet: str) -> bool:
    from sparkserve.local import several

    return several.exists(fleet)


def _plan(fleet: str, node: str | None, file: Path | None) -> Plan:
    """The plan of this host. Raises `FLEET.NAME` when the fleet has no such node."""
    import socket

    from sparkserve import plan
    from sparkserve.fleet import names, plans

    if file is not None:
        return plan.load(file)
    loaded = plans.load(fleet)
    name = node or socket.gethostname().partition(".")[0]
    for each in loaded:
        if each.node.name == name:
            return each
    found, do = name if node else f"the host name {name}", "Say which of them this host is: --node NAME."
    raise names.no_node(fleet, (each.node.name for each in loaded), found, do)
