"""`sparkserve generations gc`: frees the nodes' disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.deploy.garbage import Garbage


@click.command(
    "gc",
    epilog="""Examples:

    ./sparkserve generations gc

    ./sparkserve generations gc --apply

    ./sparkserve generations gc --json | jq '.[] | {node, bytes}'

What is current, what was kept last, what rollback returns to, and every baseline stay, on all nodes; so does
what is not of sparkserve. Then Nix deletes whatever in a node's store has no GC root. Exit code: 91 while a
deployment is open, 97 when a node runs something else than its current generation.""",
)
@options.fleet
@click.option("--apply", "apply_", is_flag=True, help="Do it. Without it nothing changes.")
@options.as_json
def command(fleet: str, apply_: bool, as_json: bool) -> None:
    """Delete generations that nobody goes back to, and what nothing refers to then."""
    from sparkserve import fleet as fleets
    from sparkserve.deploy import garbage
    from sparkserve.output import print_json
    from sparkserve.terminal import console

    gone = garbage.collect(fleet, apply=apply_, show=lambda found: None if as_json else _print(found))
    if as_json:
        print_json([_row(node, there, applied=apply_) for node, there in gone.items()])
    elif apply_:
        for node, there in gone.items():
            console.print(f"{node}: {len(there.paths)} paths are gone, {there.bytes / 1e6:.1f} MB.")
    else:
        console.print(f"Nothing is changed. To do it: {fleets.command('generations gc --apply', fleet)}")


def _row(node: str, there: Garbage, *, applied: bool) -> dict[str, Any]:
    numbers = [each.number for each in there.generations]
    return {
        "node": node,
        "applied": applied,
        "generations": numbers,
        "bytes": there.bytes,
        "paths": sorted(there.paths),
    }


def _print(found: Mapping[str, Garbage]) -> None:
    from sparkserve.terminal import print_table

    print_table(
        ("node", "generations to delete", "store paths", "bytes"),
        [
            (
                node,
                ", ".join(str(each.number) for each in there.generations) or "none",
                str(len(there.paths)),
                f"{there.bytes / 1e6:.1f} MB",
            )
            for node, there in found.items()
        ],
    )
