"""`sparkserve status`: what runs, and whether it answers."""

from __future__ import annotations

from typing import Any

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve status

    ./sparkserve status --json | jq -r '.nodes[0].state'

Exit code: 0 when every node is ready, 52 otherwise. States: stopped; starting (up still waits for its first
answer); abandoned (that up is gone; another one waits on); ready; silent (it was ready, and /health does not
answer within 5 s); dead (it ended by itself: see logs; down or up cleans up)."""
)
@options.fleet
@options.as_json
@click.pass_context
def command(context: click.Context, fleet: str, as_json: bool) -> None:
    """Show each node: state, process, memory, last canary."""
    from sparkserve.engine.status import ADVICE
    from sparkserve.errors import EXIT_CODES
    from sparkserve.local import fleets
    from sparkserve.output import console, print_json, print_table

    nodes = fleets.report(fleet)
    if as_json:
        print_json({"fleet": fleet, "nodes": nodes})
    elif all(node["state"] == "stopped" for node in nodes):
        console.print(f"{fleet} does not run. Start it with: ./sparkserve up")
    else:
        columns = ("node", "state", "pid", "uptime", "memory", "canary", "fleet id", "endpoint")
        print_table(columns, [_row(node) for node in nodes])
        for node in nodes:
            if node["state"] in ADVICE:
                console.print(f"{node['node']}: {ADVICE[str(node['state'])]}")
    if not nodes or any(node["state"] != "ready" for node in nodes):
        context.exit(EXIT_CODES["ENGINE.STATE"])


def _row(node: dict[str, Any]) -> list[str]:
    memory = node.get("pss_bytes")
    return [
        node["node"],
        node["state"],
        str(node.get("pid", "-")),
        _time(node.get("uptime_s")),
        "-" if memory is None else f"{memory / 1e6:.0f} MB",
        _time(node.get("canary_age_s"), " ago"),
        node.get("fleet_id", "-")[:12],
        node.get("endpoint", "-"),
    ]


def _time(seconds: float | None, suffix: str = "") -> str:
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.0f} s{suffix}"
    return (f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h") + suffix
