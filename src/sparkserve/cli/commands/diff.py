"""`sparkserve diff`: what changed between two closures, generations or commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.drift.compare import Found
    from sparkserve.drift.sides import Side


def _words(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Branches and tags, or folders once there is a slash."""
    from sparkserve.errors import SparkserveError
    from sparkserve.fleet import names

    if "/" in begun and begun.startswith((".", "/", "~")):
        return [CompletionItem(begun, type="dir")]
    try:
        refs = names.git(["git", "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"])
    except SparkserveError:
        refs = ""
    return [CompletionItem(word) for word in (".", "HEAD", *refs.split()) if word.startswith(begun)]


@click.command(
    epilog="""Examples:

    ./sparkserve diff 3 4                        # two generations of the fleet's head

    ./sparkserve diff 3 4 --node spark-1 --stat

    ./sparkserve diff 3 4 --fleet tp3-triangle   # Sparks, over ssh

    ./sparkserve diff HEAD . --fleet tp3-triangle # what is not committed yet

    ./sparkserve diff v1 main --tree

    ./sparkserve diff /nix/store/...-host-home-spark-0 result --json | jq -r '.changes[].name'

A and B are host closures (folders), numbers of generations, commits of this checkout, or . for its files
as they are now. Commits are compared by the plans of --fleet, its pins, and the files of its modules;
closures also by the bytes of the engine's root. Exit code: 0, whatever differs."""
)
@click.argument("a", metavar="A", shell_complete=_words)
@click.argument("b", metavar="B", shell_complete=_words)
@options.fleet
@click.option("--node", metavar="NAME", help="Whose generations: the head's unless named.")
@click.option("--stat", is_flag=True, help="Only how many changes there are, and of what.")
@click.option("--tree", is_flag=True, help="As a tree.")
@options.as_json
def command(a: str, b: str, fleet: str, node: str | None, stat: bool, tree: bool, as_json: bool) -> None:
    """Say what changes from A to B: pins, plan, modules, adapters."""
    from sparkserve.drift import compare, resolve, revisions, told
    from sparkserve.output import print_json
    from sparkserve.terminal import console, print_table, print_tree

    if stat + tree + as_json > 1:
        raise click.UsageError("one of --stat, --tree and --json")
    if node is not None and not (a.isdecimal() or b.isdecimal()):
        raise click.UsageError("--node says whose generation a number is, and neither A nor B is one")
    one, other = resolve.resolve(a, fleet, node), resolve.resolve(b, fleet, node)
    found = compare.compare(one, other, revisions.modules(one, other, fleet))
    unknown = compare.unknown(one, other)
    if as_json:
        print_json(_document(one, other, found, unknown))
        return
    console.print(f"A  {_label(one)}\nB  {_label(other)}")
    if stat:
        print_table(("section", "changes", "which"), told.summary(found))
    elif tree:
        print_tree(told.tree(found, "A → B"))
    else:
        for line in told.lines(found):
            click.echo(line)
    if unknown:
        console.print(f"Not compared, because one of them does not have it: {', '.join(unknown)}.")
    if not found:
        console.print("Nothing differs.")


def _label(side: Side) -> str:
    return side.label + (f", fleet id {side.fleet_id[:12]}" if side.fleet_id else "")


def _document(one: Side, other: Side, found: Sequence[Found], unknown: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": "sparkserve.diff/1",
        "a": {"label": one.label, "fleet_id": one.fleet_id, "commit": one.commit or None},
        "b": {"label": other.label, "fleet_id": other.fleet_id, "commit": other.commit or None},
        "changes": [each.as_dict() for each in found],
        "not_compared": list(unknown),
    }
