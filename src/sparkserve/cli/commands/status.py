"""`sparkserve status`: what runs, and whether it answers."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve status

    ./sparkserve status --json | jq -r '.nodes[0].state'

Exit code: 0 when every node is ready, 52 otherwise. States: stopped; starting (up still waits for its first
answer); ready; silent (it was ready, and /health does not answer within 5 s); dead (it ended by itself: see
logs; down or up cleans up)."""
)
@options.fleet
@options.as_json
@click.pass_context
def command(context: click.Context, fleet: str, as_json: bool) -> None:
    """Show each node: state, process, memory, last canary."""
    from sparkserve.engine.status import report
    from sparkserve.errors import EXIT_CODES
    from sparkserve.local import single
    from sparkserve.output import console, print_json, print_table

    nodes = [report(files) for files in single.nodes(fleet)]
    if as_json:
        print_json({"fleet": fleet, "nodes": nodes})
    elif all(node["state"] == "stopped" for node in nodes):
        console.print(f"{fleet} does not run. Start it with: ./sparkserve up")
    else:
        columns = ("node", "state", "pid", "uptime", "memory", "canary", "fleet id", "endpoint")
        print_table(columns, [_row(node) for node in nodes])
    if not nodes or any(node["state"] != "ready" for node in nodes):
        context.exit(EXIT_CODES["ENGINE.STATE"])


def _row(node: dict[str, str | int | float | None]) -> list[str]:
    def shown(key: str, unit: str = "", scale: float = 1) -> str:
        value = node.get(key)
        if isinstance(value, str):
            return value
        return "-" if value is None else f"{value / scale:.0f}{unit}"

    return [
        shown("node"),
        shown("state"),
        shown("pid"),
        shown("uptime_s", " s"),
        shown("pss_bytes", " MB", 1e6),
        shown("canary_age_s", " s ago"),
        shown("fleet_id")[:12],
        shown("endpoint"),
    ]
