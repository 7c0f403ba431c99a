"""The guard program: the one on PATH (a closure's), else made from its source by this machine's compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guard_world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[2] / "pkgs/guard/src"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = os.environ.get("SPARKSERVE_GUARD") or shutil.which("guard")
    if found:
        return found
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("neither guard nor cc")
    made = tmp_path_factory.mktemp("guard") / "guard"
    files = sorted(str(file) for file in SOURCE.glob("*.c"))
    subprocess.run([compiler, "-D_GNU_SOURCE", "-O2", "-static", "-o", str(made), *files], check=True)
    return str(made)


@pytest.fixture
def world(program: str, tmp_path: Path) -> Iterator[World]:
    made = World(program, tmp_path)
    yield made
    made.end()
