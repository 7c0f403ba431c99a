"""The bytes that a closure consists of, as this machine's Nix store has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.drift.report import Difference, difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.engine.closure import Closure
    from sparkserve.host.system import System

_MODIFIED = re.compile(r"path '([^']+)' was modified! expected hash '([^']+)', got '([^']+)'")


def paths(system: System, folder: Path, closure: Closure) -> list[str]:
    """All paths of the host closure at `folder`, if the store knows them, else those that it names itself."""
    done = system.run("nix-store", "--query", "--requisites", str(folder))
    named = [str(folder), *(layer.path for layer in closure.root.layers), closure.harness.path]
    return sorted({*named, *(done.stdout.split() if done.returncode == 0 else ())})


def recorded(system: System, wanted: list[str]) -> Iterator[Difference]:
    """Those of the paths `wanted` that the store's own record does not have."""
    done = system.run("nix-store", "--check-validity", "--print-invalid", *wanted)
    invalid = done.stdout.split()
    if done.returncode != 0 and not invalid:
        yield difference("root", "the store", "to answer", _said(done.stderr))
    for path in invalid:
        yield difference("root", path, "in the store's record", "not there")


def read(system: System, wanted: list[str]) -> Iterator[Difference]:
    """Read every file of `wanted`, and compare with what the store recorded when they came."""
    command = commands.verify(*wanted)
    done = system.run(*command.argv, timeout_s=command.timeout_s)
    if done.returncode == 0:
        return
    modified = _MODIFIED.findall(done.stderr)
    for path, one, other in modified:
        yield difference("root", path, one, other)
    # A file that cannot be read is an error in words of its own.
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if errors or not modified:
        yield difference(
            "root", "the store", "every file to be read", _said("\n".join(errors) or done.stderr)
        )


def _said(text: str) -> str:
    return " ".join(text.split())[-300:] or "no word"
