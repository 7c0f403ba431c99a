"""checks/gates.json, the parts of the harness that checks/gates.nix has, is what a gate imports, and no more.

What is missing there would fail in the build sandbox alone; what is idle there would start an engine for an
edit that no gate sees.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKS = Path(__file__).parents[2] / "checks"
SOURCE = Path(__file__).parents[2] / "src/sparkserve"
PARTS = json.loads((CHECKS / "gates.json").read_text())
# `subject.of_fleet` asks what a fleet serves; the check knows it, and calls `of_endpoint`.
NOT_CALLED = {("gates/subject.py", name) for name in ("local/__init__.py", "local/fleets.py")}


def imported(path: Path) -> Iterator[Path]:
    """The files of sparkserve that a file imports, also inside a function, but not for types alone."""
    tree = ast.parse(path.read_text())
    types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "sparkserve":
                yield from files_of(rest)


def files_of(names: list[str]) -> Iterator[Path]:
    """The files that importing the module runs; the last name may be one of its values."""
    for count in range(len(names) + 1):
        place = SOURCE.joinpath(*names[:count])
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                yield file


def reached() -> dict[str, str]:
    """By file of sparkserve what imports it, from the check's builder and from every gate."""
    found: dict[str, str] = {}
    ahead = [CHECKS / "gates.py", *(SOURCE / "gates/kinds").glob("*.py")]
    while ahead:
        path = ahead.pop()
        here = str(path.relative_to(SOURCE)) if path.is_relative_to(SOURCE) else f"checks/{path.name}"
        for file in imported(path):
            name = str(file.relative_to(SOURCE))
            if name not in found and (here, name) not in NOT_CALLED:
                found[name] = here
                ahead.append(file)
    return found


def inside(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}/")


def test_all_that_a_gate_imports_is_there() -> None:
    missing = {name: by for name, by in reached().items() if not any(inside(name, part) for part in PARTS)}
    assert not missing, "\n".join(
        f"{by} imports {name}: do without it, or add it to checks/gates.json" for name, by in missing.items()
    )


def test_nothing_there_is_idle() -> None:
    names = reached()
    idle = [part for part in PARTS if not any(inside(name, part) for name in names)]
    assert not idle, f"no gate imports {idle}: take it out of checks/gates.json"
    assert sorted(set(PARTS)) == PARTS
