"""`sparkserve guard`: what the memory guard of a node promises, and what it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from sparkserve.guard.state import State
    from sparkserve.plan import Guard, Plan


@click.group(
    epilog="""Examples:

    ./sparkserve guard explain --fleet my-desk

    sparkserve guard show --json | jq .low_water_kib

The guard kills a node's engine before the memory that the node itself needs is gone; docs/guard.md."""
)
def command() -> None:
    """See the memory guard: its floors, and how much memory was left at the worst."""


@command.command(epilog="Example: ./sparkserve guard explain --fleet local-triangle --json")
@options.fleet
@options.as_json
def explain(fleet: str, as_json: bool) -> None:
    """Print floors, intervals, and the rate up to which the floors hold, for nodes with equal ones."""
    from sparkserve.fleet import plans
    from sparkserve.output import print_json

    loaded = plans.load(fleet)
    if as_json:
        guards = {each.node.name: each.guard and each.guard.model_dump(mode="json") for each in loaded}
        print_json({"fleet": fleet, "guards": guards})
        return
    shared: dict[str, list[Plan]] = {}
    for each in loaded:
        shared.setdefault(each.guard.model_dump_json() if each.guard else "", []).append(each)
    for alike in shared.values():
        _tell(", ".join(each.node.name for each in alike), alike[0].guard)


def _tell(nodes: str, guard: Guard | None) -> None:
    from sparkserve.terminal import console, print_table

    if guard is None:
        console.print(f"No memory guard on {nodes}: guard.enable is false, or it is a single node.")
        return
    levels = (("until it serves", guard.startup), ("while it serves", guard.steady))
    print_table(
        (f"the engine of {nodes}", "floor", "killed below", "sampled at least every"),
        [(n, f"{v.floor_mib} MiB", f"{v.line_mib} MiB", f"{v.interval_ms} ms") for n, v in levels],
    )
    console.print(_promise(guard))


def _promise(guard: Guard) -> str:
    return (
        f"MemAvailable stays above the floor while it falls by {guard.rate_mib_s} MiB/s at most: at that "
        f"rate it goes from the line to the floor in {guard.closest_ms} ms, the shortest time between two "
        f"samples, and {guard.kill_ms} ms, what a kill takes. Killed is the engine of the node, with all of "
        f"its processes; then the group ends on all nodes. The supervisor, sshd and the front stay."
    )


@command.command(epilog="Example, on a node: sparkserve guard show")
@options.as_json
def show(as_json: bool) -> None:
    """Print what the guard of this host saw. Exit code 64 when none watches."""
    from sparkserve.guard import state
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    found = state.read()
    if as_json:
        print_json({**found.model_dump(mode="json"), "age_s": round(found.age_s, 3)})
        return
    print_table(("what", "value"), _rows(found))


def _rows(found: State) -> list[tuple[str, str]]:
    return [
        ("MemAvailable", f"{_gib(found.available_kib)}, {found.age_s:.1f} s ago"),
        ("floor", f"{found.floor_mib} MiB ({found.phase}); the engine is killed below {found.line_mib} MiB"),
        ("engine", "runs" if found.engine else "does not run"),
        ("least since its start", _gib(found.low_water_engine_kib)),
        ("least since the node's boot", _gib(found.low_water_kib)),
        ("kills since the node's boot", str(found.kills)),
        ("last kill", found.kill.words() if found.kill else "-"),
        ("did not get", ", ".join(found.lacks) or "-"),
    ]


def _gib(kib: Any) -> str:
    return "-" if kib is None else f"{kib / 2**20:.2f} GiB"
