"""`sparkserve pins`: the bytes that everything is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options
from sparkserve.cli.subcommands import Subcommands

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@click.group(cls=Subcommands, prefix="pins")
def command() -> None:
    """Lock, fetch, check, list and carry the pinned packages."""


@command.command(
    epilog="Examples:  ./sparkserve pins lock --dry-run   ./sparkserve pins lock engine-cpu --from ~/wheels"
)
@options.profiles
@click.option("--dry-run", is_flag=True, help="Show what would change; write no list.")
@options.given
@options.mirror
@options.as_json
def lock(
    profiles: Sequence[str], dry_run: bool, given: Sequence[str], mirror: str | None, as_json: bool
) -> None:
    """Resolve profiles (default: all but those on request) into nix/pins/*.json and show what changed."""
    import datetime

    from sparkserve.output import print_json
    from sparkserve.pins import lock as locking
    from sparkserve.pins import profile
    from sparkserve.terminal import console

    today = datetime.datetime.now(datetime.UTC).date()
    changes = locking.lock(profiles or profile.usual(), given, mirror, dry_run=dry_run, today=today)
    if as_json:
        print_json({"written": not dry_run, "changes": {each.profile: each.lines for each in changes}})
        return
    for change in changes:
        console.print(f"{change.profile}: {len(change.lines)} changes")
        for line in change.lines:
            console.print(f"  {line}")
    if dry_run:
        console.print("No list was written (--dry-run).")


@command.command(
    epilog="Examples:  ./sparkserve pins fetch   ./sparkserve pins fetch engine-cpu --from /media/usb/wheels"
)
@options.profiles
@options.given
@options.mirror
@options.as_json
def fetch(profiles: Sequence[str], given: Sequence[str], mirror: str | None, as_json: bool) -> None:
    """Download what the Nix store lacks of the pins (default: all but those on request).

    engine-gb10, 3.7 GB, is on request: name it.
    """
    from sparkserve.output import print_json
    from sparkserve.pins import fetch as fetching
    from sparkserve.pins import profile
    from sparkserve.terminal import console

    got = fetching.fetch(profiles or profile.usual(), given, mirror)
    if as_json:
        print_json({"fetched_bytes": got})
    else:
        console.print(f"All pins are in the store; {got / 1e6:.1f} MB fetched.")


@command.command(epilog="Examples:  ./sparkserve pins check   ./sparkserve pins check base tools --json")
@options.profiles
@options.as_json
def check(profiles: Sequence[str], as_json: bool) -> None:
    """Prove that every pin is in the store with the right bytes (else exit 20: missing, 21: damaged).

    Without names: of all profiles but those on request.
    """
    from sparkserve.output import print_json
    from sparkserve.pins import check as checking
    from sparkserve.pins import profile
    from sparkserve.terminal import console, phase

    with phase("Check pins"):
        count = checking.check(profiles or profile.usual())
    if as_json:
        print_json({"pins": count, "ok": True})
    else:
        console.print(f"{count} pins are present and right.")


@command.command(
    "list", epilog="Examples:  ./sparkserve pins list   ./sparkserve pins list engine-cpu --json"
)
@options.profiles
@options.as_json
def list_(profiles: Sequence[str], as_json: bool) -> None:
    """Show the pins of profiles (default: all), with totals."""
    from sparkserve.output import print_json
    from sparkserve.pins import model
    from sparkserve.terminal import print_table

    lists = [model.load(name) for name in profiles or model.known()]
    if as_json:
        dumped = [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in lists]
        print_json(dumped)
        return
    rows = [
        (each.profile, pin.kind, pin.name, pin.version, f"{pin.size:,}", pin.sha256[:12])
        for each in lists
        for pin in each.pins
    ]
    totals = [
        (
            each.profile,
            "total",
            f"{len(each.pins)} pins",
            f"locked {each.locked}",
            f"{_size(each.pins):,}",
            "",
        )
        for each in lists
    ]
    print_table(("Profile", "Kind", "Name", "Version", "Bytes", "sha256"), [*rows, *totals])


def _size(pins: Sequence[Any]) -> int:
    # A tree is made from a deb of the same list, so it is not downloaded.
    return sum(pin.size for pin in pins if pin.kind != "tree")
