"""Tests of this folder need a real host: root, Nix, and the pins in the store."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import engine_copy
import pytest
import stub_clone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from group_fleet import Real

# The small server that stands in for SGLang is shared with the unit tests.
sys.path.append(str(Path(__file__).parents[1] / "unit"))
# And the memory guard's world.
sys.path.append(str(Path(__file__).parents[1] / "guard"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0 or shutil.which("nix") is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root and Nix"))


@pytest.fixture
def clone() -> Iterator[stub_clone.Clone]:
    """A clone with the real entry script and a harness that builds in no time."""
    # Not tmp_path, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sparkserve-clone-"))
    folder.chmod(0o755)
    yield stub_clone.make(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engine_copy.Copy]:
    """This checkout's files with a port of their own, for real engines."""
    copy = engine_copy.make(tmp_path_factory.mktemp("checkout"))
    yield copy
    copy.run("down")


@pytest.fixture(scope="session")
def triangle_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engine_copy.Copy]:
    """The same with a local-triangle in a network of its own, which is down.

    One for all modules: to make its closure and to copy it to three disks takes two minutes.
    """
    from sparkserve.local import triangle

    copy = engine_copy.make(tmp_path_factory.mktemp("checkout"), {"local-triangle": "10.79.33"})
    yield copy
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(copy.path))
        triangle.down("local-triangle", disks=True)


@pytest.fixture(scope="module")
def group(triangle_copy: engine_copy.Copy) -> Iterator[Real]:
    """A group on nodes that are powered on for this module, which is one of fleet/."""
    from group_fleet import real

    with real(triangle_copy) as made:
        yield made


@pytest.fixture
def serving(group: Real) -> None:
    """The test begins with a group that serves; `up` mends what the one before it broke."""
    group.bring_up()
