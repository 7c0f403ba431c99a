"""Pins with real Nix, apt and pip: an empty store in its own mount namespace, so that the machine's is safe.

Needs root, Nix and the network (or caches) for the 140 kB of `tools` and one small wheel of `harness`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from pins_world import REPOSITORY, SPARKSERVE, World

from sparkserve.pins import model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    for name in ("nix/pins", "nix/profiles"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    made = World(tmp_path)
    yield made
    made.holder.kill()
    made.holder.wait()


def keep_only(world: World, profile: str, name: str) -> model.Pin:
    """Cut a pin list to one pin, which is returned."""
    file = world.root / f"nix/pins/{profile}.json"
    value = json.loads(file.read_text())
    value["pins"] = [pin for pin in value["pins"] if pin["name"] == name]
    file.write_text(json.dumps(value))
    return model.Pin.model_validate(value["pins"][0])


def test_committed_paths_are_those_that_nix_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    for pin in [pin for name in ("stage0", "base") for pin in model.load(name).pins]:
        flags = ["--recursive"] if pin.kind == "tree" else []
        argv = ["nix-store", "--print-fixed-path", *flags, "sha256", pin.sha256, pin.file]
        assert subprocess.run(argv, capture_output=True, text=True).stdout.strip() == pin.path


def test_debs_are_fetched_once_checked_and_repaired(world: World) -> None:
    assert world.pins("check", "tools")[0] == 20
    code, out = world.pins("fetch", "tools")
    assert code == 0, out
    assert "0.1 MB fetched" in out
    start = time.monotonic()
    assert "0.0 MB fetched" in world.pins("fetch", "tools")[1]
    assert time.monotonic() - start < 2
    assert world.pins("check", "tools")[0] == 0
    assert list((world.root / ".sparkserve/downloads").iterdir()) == []

    path = next(p.path for p in model.PinList.model_validate_json(
        (world.root / "nix/pins/tools.json").read_bytes()).pins if p.name == "patchelf")  # fmt: skip
    with world.physical(path).open("r+b") as file:
        file.write(b"X")
    code, out = world.pins("check", "tools")
    assert code == 21
    assert path in out
    assert world.run("nix-store", "--delete", "--ignore-liveness", path)[0] == 0
    assert world.pins("fetch", "tools")[0] == 0
    assert world.pins("check", "tools")[0] == 0


def test_two_fetches_at_once_are_both_right(world: World) -> None:
    runs = [world.start(*SPARKSERVE, "pins", "fetch", "tools") for _ in range(2)]
    outs = [process.communicate(timeout=300)[0] for process in runs]
    assert [process.returncode for process in runs] == [0, 0], outs
    assert world.pins("check", "tools")[0] == 0


def test_a_wheel_with_another_hash_is_refused(world: World) -> None:
    pin = keep_only(world, "harness", "click")
    file = world.root / "nix/pins/harness.json"
    right = file.read_text()
    file.write_text(right.replace(pin.sha256, "0" * 64))
    code, out = world.pins("fetch", "harness")
    assert code == 21
    assert "0" * 64 in out
    assert pin.sha256 in out
    file.write_text(right)
    assert world.pins("fetch", "harness")[0] == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_fetch_is_finished_by_the_next(world: World, how: signal.Signals) -> None:
    first = world.start(*SPARKSERVE, "pins", "fetch", "tools")
    time.sleep(1.0)
    first.send_signal(how)
    out, _ = first.communicate(timeout=60)
    assert first.returncode in (0, 128 + how, -how), out
    assert world.pins("fetch", "tools")[0] == 0
    assert world.pins("check", "tools")[0] == 0
    assert list((world.root / ".sparkserve/downloads").iterdir()) == []
