"""The one printer: phases with a spinner or plain lines, tables, errors, `--json`.

Everything for people goes to stderr, so that stdout carries only what a script asked for.
"""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkserve import disk
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

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


def print_json(value: Any) -> None:
    """Print `value` to stdout as JSON with sorted keys."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write `text` to `path` in one step: whole or not at all. Raises `CLI.USAGE`, `HOST.DISK`, `OSError`."""
    if not path.parent.is_dir():
        raise SparkserveError(
            "CLI.USAGE",
            expected=f"a folder {path.parent} for {path.name}",
            found="none",
            where=str(path),
            do="Make it, or name another file.",
        )
    with disk.guarded(path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # /dev/stdout, a FIFO: a pipe has no name to resolve to
            return
        path = path.resolve()  # not the link, but what it points to
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            error.filename = str(path)
            raise
        finally:
            with suppress(OSError):
                part.unlink()


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


def print_error(error: SparkserveError, *, as_json: bool) -> None:
    """Print an error: one paragraph on stderr, or one JSON object on stdout."""
    if as_json:
        print_json(error.as_dict())
        return
    rest = f" expected {error.expected}, found {error.found} ({error.where}). {error.do}"
    console.print(Text.assemble((error.id, "bold red"), visible(rest)))


def visible(text: str) -> str:
    """`text` with what would act on a terminal, or turn its lines around, written as Python writes it.

    A name out of a file can have an escape sequence in it, or U+202E.
    """
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf") else ascii(char)[1:-1]
        for char in text
    )


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
