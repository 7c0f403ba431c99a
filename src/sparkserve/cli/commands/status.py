"""`sparkserve status`: what runs, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command(
    epilog="""Examples:

    ./sparkserve status

    ./sparkserve status --json | jq -r '.nodes[0].state'

    ./sparkserve status --fleet tp3-triangle     # Sparks, which are asked over ssh

Exit code: 0 when every node is ready, 52 otherwise. States: stopped; starting (up still waits for its first
answer); abandoned (that up is gone; another one waits on); ready; silent (it was ready, and no answer comes
any more); dead (it ended by itself: see logs; down or up cleans up).

Of a node in a group also: off; unreachable (it does not answer over ssh; its rank may serve on); lost (it has
no connection to the group's controller); proving (it is up, the first token is awaited); draining; down (the
group does not run). Its pid is the one that the node itself counts. Free is the node's MemAvailable, and the
least since the engine's start, as its memory guard saw them. Whether a Spark is off, nobody can say from
elsewhere: it is unreachable.

The nodes of a fleet are Sparks when its engine needs devices (serving.devices): docs/deploy.md says how they
are reached. On a Spark itself, without a checkout, the fleet is its own. No Spark has been asked yet."""
)
@options.fleet
@options.as_json
@click.pass_context
def command(context: click.Context, fleet: str, as_json: bool) -> None:
    """Show each node: state, process, memory, last canary."""
    from sparkserve.errors import EXIT_CODES
    from sparkserve.local import fleets
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table

    there = fleets.find(fleet)
    nodes = there.report()
    if as_json:
        print_json({"fleet": there.name, "nodes": nodes})
    elif not nodes:
        console.print(f"{there.name} was not brought up on this machine yet. {there.advice('stopped')}")
    elif all(node["state"] == "stopped" for node in nodes):
        console.print(f"{there.name} does not run. {there.advice('stopped')}")
    else:
        columns = (
            "node",
            "state",
            "boot",
            "pid",
            "uptime",
            "memory",
            "free (least)",
            "canary",
            "fleet id",
            "endpoint",
        )
        print_table(columns, [_row(node) for node in nodes])
        for text, names in _remarks(nodes, there.advice).items():
            console.print(f"{', '.join(names)}: {text}")
    if not nodes or any(node["state"] != "ready" for node in nodes):
        context.exit(EXIT_CODES["ENGINE.STATE"])


def _remarks(nodes: list[dict[str, Any]], advice: Callable[[str], str]) -> dict[str, list[str]]:
    """What is to be said of nodes, each thing once."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        text = " ".join(part for part in (_reason(node), advice(node["state"])) if part)
        if text:
            found.setdefault(text, []).append(node["node"])
    return found


def _reason(node: dict[str, Any]) -> str:
    reason = str(node.get("reason") or "")
    return reason if not reason or reason.endswith(".") else f"{reason}."


def _row(node: dict[str, Any]) -> list[str]:
    memory = node.get("pss_bytes")
    state = node["state"]
    if state != "ready" and node.get("phase"):
        state += f" ({node['phase']}, {_time(node['phase_s'])})"
    return [
        node["node"],
        state,
        _or_dash(node.get("boot")),
        _or_dash(node.get("pid")),
        _time(node.get("uptime_s")),
        "-" if memory is None else f"{memory / 1e6:.0f} MB",
        _free(node.get("guard")),
        _time(node.get("canary_age_s"), " ago"),
        (node.get("fleet_id") or "-")[:12],
        node.get("endpoint", "-"),
    ]


def _free(guard: dict[str, Any] | None) -> str:
    """MemAvailable as the memory guard saw it last, and the least since the engine's start."""
    if not guard or guard["available_kib"] is None:
        return "-"
    least = guard["low_water_engine_kib"] or guard["low_water_kib"]
    return f"{guard['available_kib'] / 2**20:.1f} ({least / 2**20:.1f}) GiB"


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _time(seconds: float | None, suffix: str = "") -> str:
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.0f} s{suffix}"
    return (f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h") + suffix
