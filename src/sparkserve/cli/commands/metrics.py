"""`sparkserve metrics`: the counters of a fleet's nodes, for people and for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.metrics.fleet import Told
    from sparkserve.plan import Plan


@click.group(
    epilog="""Examples:

    ./sparkserve metrics show

    ./sparkserve metrics targets --fleet my-desk > /etc/prometheus/sparkserve.json

docs/metrics.md says what each counter means, and has a dashboard and alert rules."""
)
def command() -> None:
    """See what the nodes count, and tell Prometheus where."""


@command.command(
    epilog="""Examples:

    ./sparkserve metrics show --node spark-1

    ./sparkserve metrics show --json | jq '.nodes[].samples.sparkserve_guard_low_water_bytes'

Exit code 71 when a node does not answer; the others are printed."""
)
@options.fleet
@click.option("--node", help="Only this one.")
@options.as_json
@click.pass_context
def show(context: click.Context, fleet: str, node: str | None, as_json: bool) -> None:
    """Ask every node for its counters, and print them side by side."""
    from sparkserve.errors import EXIT_CODES
    from sparkserve.fleet import plans
    from sparkserve.metrics.fleet import ask
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table

    told = ask(_of(plans.load(fleet), node, fleet))
    if as_json:
        print_json({"fleet": fleet, "nodes": {name: each._asdict() for name, each in told.items()}})
    else:
        there = {name: each for name, each in told.items() if not each.error}
        if there:
            print_table(("what", *there), _rows(list(there.values())))
        for name, each in told.items():
            if each.error:
                console.print(f"{name}: {each.error}. See there: systemctl status sparkserve-metrics")
    if any(each.error for each in told.values()):
        context.exit(EXIT_CODES["NODE.UNREACHABLE"])


@command.command(epilog="Example: ./sparkserve metrics targets | jq -r '.[].targets[]'")
@options.fleet
def targets(fleet: str) -> None:
    """Print where Prometheus finds the counters, as file_sd_configs reads it."""
    from sparkserve.fleet import plans
    from sparkserve.metrics import fleet as fleets
    from sparkserve.output import print_json

    print_json(fleets.targets(plans.load(fleet)))


@command.command(hidden=True, epilog="Example: sparkserve metrics serve /nix/var/nix/profiles/sparkserve")
@click.argument("closure", type=click.Path(exists=True, file_okay=False, path_type=Path))
def serve(closure: Path) -> None:
    """Serve this node's counters until SIGTERM: systemd runs it."""
    from sparkserve.metrics import serve as service

    service.run(closure.resolve())


def _of(found: Sequence[Plan], node: str | None, fleet: str) -> Sequence[Plan]:
    """All plans, or the one of `node`. Raises `FLEET.NAME`."""
    from sparkserve.errors import SparkserveError

    names = [plan.node.name for plan in found]
    if node is not None and node not in names:
        raise SparkserveError(
            "FLEET.NAME",
            expected=f"one of the nodes {', '.join(names)}",
            found=node,
            where=fleet,
            do="Leave --node out for all of them.",
        )
    return [plan for plan in found if node in (None, plan.node.name)]


def _rows(told: Sequence[Told]) -> list[tuple[str, ...]]:
    """One row for each sample that any node has. Of states that are 0 or 1 only what is."""
    names = sorted(
        {name for each in told for name, value in each.samples.items() if value or "{" not in name}
    )
    return [(name, *(_words(name, each.samples.get(name)) for each in told)) for name in names]


def _words(name: str, value: float | None) -> str:
    from datetime import UTC, datetime

    if value is None:
        return "-"
    if name.endswith("_bytes"):
        return f"{value / 2**30:.2f} GiB"
    if name.endswith("_hertz"):
        return f"{value / 1e6:.0f} MHz"
    if name.endswith("_timestamp_seconds"):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{value:.3f}".rstrip("0").rstrip(".")
