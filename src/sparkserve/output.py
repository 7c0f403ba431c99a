"""The one printer: phases with a spinner or plain lines, tables, errors, `--json`.

Everything for people goes to stderr, so that stdout carries only what a script asked for.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sparkserve.errors import SparkserveError

console = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print `value` to stdout as JSON with sorted keys."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to stdout, at full width when stdout is not a terminal."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    out = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=200)
    out.print(table)


def print_error(error: SparkserveError, *, as_json: bool) -> None:
    """Print an error: one paragraph on stderr, or one JSON object on stdout."""
    if as_json:
        print_json(error.as_dict())
        return
    console.print(f"[bold red]{error.id}[/] expected {error.expected},", markup=True, end=" ")
    console.print(f"found {error.found} ({error.where}). {error.do}", markup=False)


@contextmanager
def phase(name: str) -> Iterator[Callable[[str], None]]:
    """Show `name` while the body runs, then one line with the seconds it took.

    Yields a function that replaces the detail text. On a terminal a spinner turns; elsewhere only the closing
    line is printed, so that logs stay short.
    """
    start = time.monotonic()
    # Text, not str: rich reads the brackets of a build's output as markup, and stops at "[/bin/sh]".
    with console.status(Text(name)) as status:

        def detail(text: str) -> None:
            status.update(Text(f"{name} · {text}"))

        yield detail
    took = f" {time.monotonic() - start:.1f} s"
    console.print(Text.assemble(("✓", "green"), f" {name}", (took, "dim")))
