"""Which edits run the check of the quick gates again, and which do not. Nothing is built."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import engine_copy
import evaluated
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELSEWHERE = (
    "src/sparkserve/cli/main.py", "src/sparkserve/cli/commands/gate.py", "src/sparkserve/doctor/check.py",
    "src/sparkserve/local/single.py", "src/sparkserve/group/engine.py", "src/sparkserve/pins/lock.py",
    "src/sparkserve/front/server.py", "src/sparkserve/transport/deliver.py",
    "src/sparkserve/engine/status.py", "docs/design.md", "README.md", "pyproject.toml",
    "tests/unit/test_plan.py", "nix/host.py", "pkgs/guard/src/main.c",
)  # fmt: skip
WHAT_RUNS = (
    "checks/gates.py", "src/sparkserve/gates/kinds/smoke.py", "src/sparkserve/gates/runner.py",
    "src/sparkserve/client/client.py", "src/sparkserve/engine/runner.py", "src/sparkserve/plan.py",
    "src/sparkserve/adapters/plugin.py", "pkgs/engine-cpu/overlay/lib/sparkserve_launch.py",
    "pkgs/engine-cpu/patches/sglang-without-ipython.patch", "pkgs/demo-model/convert.py", "nix/closure.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> engine_copy.Copy:
    return engine_copy.make(tmp_path_factory.mktemp("checkout"))


def derivation(checkout: engine_copy.Copy) -> str:
    """What Nix builds as the check; one that is built does not run again."""
    expression = f'(import {checkout.path}/nix {{ system = "x86_64-linux"; }}).checks.gates.drvPath'
    return str(evaluated.value(expression))


@contextmanager
def edited(file: Path, old: str, new: str) -> Iterator[None]:
    text = file.read_text()
    assert text.replace(old, new) != text
    file.write_text(text.replace(old, new))
    yield
    file.write_text(text)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_an_edit_elsewhere_runs_no_engine(checkout: engine_copy.Copy, name: str) -> None:
    before = derivation(checkout)
    with edited(checkout.path / name, "\n", "\n\n"):
        assert derivation(checkout) == before


@pytest.mark.parametrize("name", WHAT_RUNS)
def test_an_edit_of_what_runs_does(checkout: engine_copy.Copy, name: str) -> None:
    before = derivation(checkout)
    with edited(checkout.path / name, "\n", "\n\n"):
        assert derivation(checkout) != before


def test_another_plan_runs_it_and_another_text_of_it_does_not(checkout: engine_copy.Copy) -> None:
    fleet, before = checkout.path / "hosts/local-single/fleet.nix", derivation(checkout)
    with edited(fleet, f"port = {checkout.port};", f"port = {checkout.port + 1};"):
        assert derivation(checkout) != before
    with edited(fleet, "\n", "\n# the same\n"):
        assert derivation(checkout) == before
