"""`sparkserve image`: images as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from sparkserve.image.diff import Diff, Pair

# More than anybody reads; --json has all.
SHOWN = 40

_folder = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Compare and verify images: OCI layouts, as `nix build .#local-image` makes them."""


@command.command(
    epilog="""Examples:

    ./sparkserve image verify result

    ./sparkserve image verify /media/usb/serving-image --json

Exit code: 0 when all is right, 42 when a blob is damaged or missing, 43 for a folder that is no layout."""
)
@click.argument("path", metavar="PATH", type=_folder)
@options.as_json
def verify(path: Path, as_json: bool) -> None:
    """Read every blob of an image and compare digests, sizes and diff_ids."""
    from sparkserve.image import verify as verifying
    from sparkserve.output import print_json
    from sparkserve.terminal import console, phase

    with phase("Read the image") as detail:
        found = verifying.verify(path, detail)
    if as_json:
        print_json({"ok": True, "images": found.images, "blobs": found.blobs, "bytes": found.size})
    else:
        console.print(f"{found.blobs} blobs of {found.images} images, {found.size / 1e6:.1f} MB, are right.")


@command.command(
    epilog="""Examples:

    ./sparkserve image diff before/result result

    ./sparkserve image diff /nix/store/...-host-home-spark-0 result --json | jq '.layers[].files[].path'

A and B are OCI layouts, or host closures, whose layers are the same in another form. A layer that only one
side has is read, and stands beside the one of the other side that it shares most files with. Exit code: 0,
whatever differs."""
)
@click.argument("a", metavar="A", type=_folder)
@click.argument("b", metavar="B", type=_folder)
@options.as_json
def diff(a: Path, b: Path, as_json: bool) -> None:
    """Say which layers A and B share, and which files differ in the others."""
    from sparkserve.image import diff as diffing
    from sparkserve.image import layers
    from sparkserve.output import print_json
    from sparkserve.terminal import phase

    one, other = layers.of(a), layers.of(b)
    with phase("Compare layers") as detail:
        found = diffing.diff(one, other, detail)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)


def _print(found: Diff) -> None:
    from sparkserve.terminal import console, print_table

    rows = [("same", each.name, _short(each.diff_id), _short(each.diff_id), "", "") for each in found.same]
    rows += [
        (
            pair.state,
            pair.name,
            _short(pair.old.diff_id if pair.old else ""),
            _short(pair.new.diff_id if pair.new else ""),
            f"{pair.old_size:,}",
            f"{pair.new_size:,}",
        )
        for pair in found.pairs
    ]
    print_table(("Layer", "Name", "A", "B", "Bytes in A", "Bytes in B"), rows)
    for pair in found.pairs:
        if pair.old and pair.new:
            _print_files(pair)
    if not found.pairs:
        console.print("Nothing differs.")


def _print_files(pair: Pair) -> None:
    assert pair.old and pair.new  # noqa: S101 - the caller has looked
    click.echo(f"\n{_short(pair.old.diff_id)} -> {_short(pair.new.diff_id)}: {len(pair.files)} paths differ")
    for file in pair.files[:SHOWN]:
        old, new = (f"{each.size:,}" if each and each.kind == "file" else "" for each in (file.old, file.new))
        sizes = " -> ".join(filter(None, (old, new)))
        click.echo(f"  {file.sign} {file.path}  {sizes}".rstrip())
    if len(pair.files) > SHOWN:
        click.echo(f"  and {len(pair.files) - SHOWN} more: --json has all")


def _short(diff_id: str) -> str:
    return diff_id.removeprefix("sha256:")[:12]
