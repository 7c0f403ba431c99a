"""`sparkserve pins update`: packages of newer versions, and what moves with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.pins.lock import Move


def _packages() -> list[str]:
    from sparkserve.pins import update

    return update.known()


@click.command(
    epilog="""Examples:

    ./sparkserve pins update sglang --dry-run

    ./sparkserve pins update jinja2 click

It is `pins lock` for the profiles that have a package, but other wheels stay at their versions unless the new
ones need them to move; debs become what the mirror has. Without packages it is `pins lock`. For each pin that
moved it says what it needs now, and for a wheel that adapters are put around, which of those places are in a
module that changed: ./sparkserve adapters verify then says whether they still hold."""
)
@click.argument("packages", nargs=-1, metavar="[PKG]...", shell_complete=options.complete(_packages))
@click.option("--dry-run", is_flag=True, help="Show what would change; write no list.")
@options.given
@options.mirror
@options.as_json
def command(
    packages: Sequence[str], dry_run: bool, given: Sequence[str], mirror: str | None, as_json: bool
) -> None:
    """Lock packages (default: all) at newer versions and show what moves with them."""
    import datetime

    from sparkserve.output import print_json
    from sparkserve.pins import lock, model, update
    from sparkserve.terminal import console

    today = datetime.datetime.now(datetime.UTC).date()
    names = update.profiles(packages)
    changes = lock.lock(names, given, mirror, dry_run=dry_run, today=today, only=packages)
    left = [name for name in update.having(packages, model.known()) if name not in names]
    if as_json:
        moved = {each.profile: [_as_dict(move) for move in each.moves] for each in changes}
        print_json({"written": not dry_run, "changes": moved, "left_out": left})
        return
    for change in changes:
        console.print(f"{change.profile}: {len(change.moves)} changes")
        for move in change.moves:
            _print(move)
    if left:
        console.print(f"Left as they are, being on request: {', '.join(left)} (./sparkserve pins lock NAME).")
    if dry_run:
        console.print("No list was written (--dry-run).")


def _print(move: Move) -> None:
    from sparkserve.pins import update
    from sparkserve.terminal import console

    old, new = (pin.size if pin else 0 for pin in move)
    console.print(f"  {move.line}   {old:,} -> {new:,} bytes ({new - old:+,})")
    added, removed = update.requires(move)
    for sign, texts in (("-", removed), ("+", added)):
        for text in texts if move.old and move.new else ():
            console.print(f"      {sign} needs {text}")
    for target in update.targets(move):
        if target.module != "same":
            console.print(
                f"      ! {target.name}: module {target.module}; {', '.join(target.users)} rely on it"
            )


def _as_dict(move: Move) -> dict[str, Any]:
    from sparkserve.pins import update

    pin = move.new or move.old
    assert pin is not None  # noqa: S101 - a move has a pin
    added, removed = update.requires(move)
    return {
        "kind": pin.kind,
        "name": pin.name,
        "old": move.old.version if move.old else None,
        "new": move.new.version if move.new else None,
        "old_bytes": move.old.size if move.old else 0,
        "new_bytes": move.new.size if move.new else 0,
        "requires_added": added,
        "requires_removed": removed,
        "targets": [target._asdict() for target in update.targets(move)],
    }
