"""`sparkserve host`: one node's operating system. It runs on that node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from sparkserve.host.prepare import Step

_dry_run = click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")


@click.group(
    epilog="""Examples, on the node:

    sparkserve host prepare --node spark-0

    sparkserve host status --json | jq .reboot

    sparkserve host activate /nix/var/nix/profiles/sparkserve --dry-run

    sparkserve host deactivate

./sparkserve up calls the same on every node of its fleet."""
)
def command() -> None:
    """Prepare this machine for closures, and put them into effect."""


@command.command(
    epilog="""Examples:

    sparkserve host prepare --node spark-0

    sudo sparkserve host prepare --node spark-0 --apply

What is done is left alone, so it may be run again at any time, and after an interruption."""
)
@click.option("--apply", "apply_", is_flag=True, help="Do what is to do. Without it nothing changes.")
@click.option("--node", metavar="NAME", help="What the fleet calls this machine: its host name to be.")
@options.as_json
def prepare(apply_: bool, node: str | None, as_json: bool) -> None:
    """Say what this machine needs before a closure can be copied to it: Nix, PATH, folders, space."""
    from sparkserve.host import prepare as preparing
    from sparkserve.host.system import System
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    system = System()
    if apply_:
        preparing.apply(system, node, lambda step: None if as_json else _say(step))
        system = System()  # it may have a new name
    steps = preparing.steps(system, node)
    if as_json:
        print_json(
            [
                {"name": step.name, "needs": step.needs, "found": step.found, "done": step.done}
                | ({} if step.done else {"do": preparing.line(step)})
                for step in steps
            ]
        )
    elif not apply_:
        print_table(
            ("step", "state", "needs", "found", "how"),
            [
                (
                    *(step.name, "done" if step.done else "to do", step.needs, step.found),
                    "" if step.done else preparing.line(step),
                )
                for step in steps
            ],
        )


@command.command(epilog="Example: sparkserve host status --json | jq .differences")
@options.as_json
def status(as_json: bool) -> None:
    """Show the generation in effect here, and what is not as its plan says."""
    from sparkserve.host import status as looking
    from sparkserve.host.system import System
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    found = looking.status(System())
    if as_json:
        print_json(found)
        return
    rows = [(key, _words(found[key])) for key in ("node", "generation", "closure")]
    rows += [("interrupted", "an activation: run it again")] if found["interrupted"] else []
    rows += [("edited", path) for path in found["edited"]]
    rows += [("differs", each) for each in found["differences"]]
    rows += [("reboot needed", each) for each in found["reboot"]]
    print_table(("", "value"), rows)


@command.command(
    epilog="""Examples:

    sparkserve host activate /nix/var/nix/profiles/sparkserve --dry-run

    sparkserve host activate /nix/var/nix/profiles/sparkserve

Exit codes: 74 when a value differs from the plan, 75 when only a reboot is missing, 76 for the closure of
another node, 77 for files edited by hand."""
)
@click.argument("closure", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Also replace files that were edited by hand, and keep copies.")
@_dry_run
@options.as_json
def activate(closure: Path, replace: bool, dry_run: bool, as_json: bool) -> None:
    """Put the host CLOSURE into effect on this machine, and verify it."""
    _bring(closure.resolve(), replace=replace, dry_run=dry_run, as_json=as_json)


@command.command(epilog="Example: sparkserve host deactivate --dry-run")
@_dry_run
@options.as_json
def deactivate(dry_run: bool, as_json: bool) -> None:
    """Restore what was on this machine before all closures."""
    _bring(None, replace=False, dry_run=dry_run, as_json=as_json)


def _bring(closure: Path | None, *, replace: bool, dry_run: bool, as_json: bool) -> None:
    from sparkserve.host.activate import bring
    from sparkserve.host.system import System

    bring(System(), closure, replace=replace, dry=dry_run, as_json=as_json)


def _say(step: Step) -> None:
    from sparkserve.terminal import console

    console.print(f"{'✓' if step.done else '✗'} {step.name}: {step.found}")


def _words(value: Any) -> str:
    return "none" if value is None else str(value)
