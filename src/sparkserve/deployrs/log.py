"""What the programs say: to the deployer, and to a file when it asks for one."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import utc

if TYPE_CHECKING:
    from pathlib import Path


class Log(NamedTuple):
    """`verb` is part of each line. `folder` is where deploy-rs wants a file too, `all` also what is done."""

    verb: str
    folder: Path | None = None
    all: bool = False

    def say(self, text: str) -> None:
        """Say `text`. That nobody listens any more, or that the file cannot be written, stops nothing."""
        self._write(text, shown=True)

    def detail(self, text: str) -> None:
        """Say `text` where all was asked for."""
        self._write(text, shown=self.all)

    def _write(self, text: str, *, shown: bool) -> None:
        with suppress(OSError):
            if shown:
                sys.stderr.write(f"[{self.verb}] {text}\n")
                sys.stderr.flush()
        with suppress(OSError):
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
                with (self.folder / f"activate-rs-{self.verb}.log").open("a") as file:
                    file.write(f"{utc.now()} {text}\n")
