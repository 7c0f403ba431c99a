"""What a command says: JSON, files, errors.

Everything for people goes to stderr, so that stdout carries only what a script asked for.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sparkserve import disk
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path


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


def print_error(error: SparkserveError, *, as_json: bool) -> None:
    """Print an error: one paragraph on stderr, or one JSON object on stdout."""
    if as_json:
        print_json(error.as_dict())
        return
    from rich.text import Text

    from sparkserve.terminal import console

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
