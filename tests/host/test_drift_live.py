"""An engine under the real bubblewrap is as its plan says, and what the plan says otherwise is seen.

Costs 1 s. Needs `bwrap` on PATH, user namespaces and a /usr with `sleep` in it; no Nix, no root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine_values
import pytest
from fake_checkout import host_closure

from sparkserve.drift import engine as engines
from sparkserve.drift import libraries
from sparkserve.engine import process
from sparkserve.engine.record import NodeFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.drift.engine import Engine
    from sparkserve.drift.report import Difference
    from sparkserve.engine.closure import Closure
    from sparkserve.engine.record import Run
    from sparkserve.plan import Plan

LEGACY = ("bin", "lib", "lib64", "sbin")


@pytest.fixture
def closure(tmp_path: Path) -> Closure:
    """A root of two layers: folders to mount on, and this machine's /usr."""
    base = tmp_path / "base"
    for name in ("usr", "proc", "dev", "tmp", "run", "root"):
        (base / name).mkdir(parents=True)
    for name in LEGACY:
        (base / name).symlink_to(f"usr/{name}")
    layers = [
        {"name": name, "target": target, "path": path, "diff_id": engine_values.DIGEST}
        for name, target, path in (("base", "/", str(base)), ("usr", "/usr", "/usr"))
    ]
    return engine_values.closure(
        root={"digest": engine_values.DIGEST, "layers": layers},
        argv=["/usr/bin/sleep", "600"],
        bwrap=host_closure().bwrap,
    )


def plan(value: str = "1", shm_mib: int = 64) -> Plan:
    return engine_values.plan(args=[], env={"A": value}, shm_mib=shm_mib)


@pytest.fixture
def run(tmp_path: Path, closure: Closure) -> Iterator[Run]:
    files = NodeFiles(tmp_path, "local-single", "spark-0")
    found = process.start(plan(), closure, tmp_path, files)
    yield found
    process.kill(found, files)


def differences(engine: Engine | None) -> list[Difference]:
    assert engine is not None
    return [
        *engines.arguments(engine),
        *engines.environment(engine),
        *engines.isolation(engine),
        *engines.mounts(engine),
        *libraries.loaded(engine).differences,
    ]


def test_an_engine_is_as_its_plan_says(run: Run, closure: Closure) -> None:
    engine = engines.of_run(plan(), closure, run)
    assert differences(engine) == []
    assert engine is not None
    # The program, the C library and its loader.
    assert libraries.loaded(engine).looked_at >= 3


def test_what_another_plan_would_have_is_seen(run: Run, closure: Closure) -> None:
    other = closure.model_copy(update={"argv": ("/usr/bin/sleep", "700")})
    found = differences(engines.of_run(plan("2", shm_mib=32), other, run))
    assert [(each.part, each.what, each.expected, each.found) for each in found] == [
        ("arguments", "the program", "/usr/bin/sleep 700", "/usr/bin/sleep 600"),
        ("environment", "A", "2", "1"),
        ("mounts", "/dev/shm", "a tmpfs of 32 MiB", "a tmpfs of 64 MiB"),  # noqa: S108 - inside the root
    ]


def test_a_library_that_is_not_of_the_root_is_seen(run: Run, closure: Closure, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    layers = [
        layer.model_copy(update={"path": str(empty)}) if layer.name == "usr" else layer
        for layer in closure.root.layers
    ]
    root = closure.root.model_copy(update={"layers": tuple(layers)})
    found = differences(engines.of_run(plan(), closure.model_copy(update={"root": root}), run))
    assert {each.part for each in found} == {"mounts", "libraries"}
    assert [each.found for each in found if each.part == "libraries" and each.what == "/usr/bin/sleep"] != []
