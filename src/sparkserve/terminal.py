"""The terminal: phases with a spinner or plain lines, tables and trees, by rich.

Apart from `output`, as rich takes a fifth of a short command's start: most commands on a node print JSON.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkserve.output import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.tree import Tree


class _Console(Console):
    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)  # also the cells of a table

    def on_broken_pipe(self) -> None:
        raise  # the error that rich caught; its own way is to exit with 1


# What is printed often comes from others: rich would read "[a-z]" in it as a style, stop at "[/bin]", and
# make a picture of ":key:".
_plain = partial(_Console, highlight=False, markup=False, emoji=False)
console = _plain(stderr=True, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to stdout: cells fold on a narrow terminal, and elsewhere a row is one line."""
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    _to_stdout(table)


def print_tree(tree: Tree) -> None:
    """Print a tree of rich to stdout, with colours on a terminal."""
    _to_stdout(tree)


def _to_stdout(what: Table | Tree) -> None:
    printer = _plain(width=None if sys.stdout.isatty() else 10_000)
    with printer.capture() as text:
        printer.print(what)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in text.get().splitlines())


@contextmanager
def phase(name: str) -> Iterator[Callable[[str], None]]:
    """Show `name` while the body runs, then one line with the seconds it took.

    Yields a function that replaces the detail text. On a terminal a spinner turns; elsewhere only the closing
    line is printed, so that logs stay short.
    """
    start = time.monotonic()
    # Text: a spinner reads a str as markup, whatever its console is told.
    with console.status(Text(name)) as status:

        def detail(text: str) -> None:
            status.update(Text(f"{name} · {text}"))

        yield detail
    took = f" {time.monotonic() - start:.1f} s"
    console.print(Text.assemble(("✓", "green"), f" {name}", (took, "dim")))
