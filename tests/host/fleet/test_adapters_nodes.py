"""A fleet that does not run what was qualified: `up` ends and says which rank and what, and nothing serves.

8 min on two cores: each case is another closure on three nodes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_fleet import Commanded, commanded
from group_fleet import NODES
from nodes import until

from sparkserve.commands import PROFILE

if TYPE_CHECKING:
    from collections.abc import Iterator

ADAPTER = "oneshot-collectives"
TARGET = "sglang.srt.distributed.parallel_state.GroupCoordinator.all_reduce"
FOLDER = "lib/sglang/srt/distributed"
# In the docstring of all_reduce and nowhere else: not even code has to change.
BEFORE, AFTER = "User-facing all-reduce function before", "User-facing all-reduce function Before"

RAISING = '''
class Adapter:
    """Raises on rank 1: when it starts, or as it computes."""

    def __init__(self, settings):
        self._while_serving = settings["while_serving"]

    def start(self, group):
        self._rank = group.rank
        if self._rank == 1 and not self._while_serving:
            raise RuntimeError("cold")

    def run_batch(self, original, *args, **kwargs):
        if self._rank == 1:
            raise RuntimeError("hot")
        return original(*args, **kwargs)
'''
DECLARED = """
title = "raises"
description = "raises"
exactness = "bit-identical"
memory = "none"
effect = "none"
upstream = "none"
conflicts = []
[hooks]
run_batch = "sglang.srt.managers.scheduler.Scheduler.run_batch"
[settings.while_serving]
default = 0
min = 0
max = 1
description = "when"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commanded]:
    with commanded(tmp_path_factory.mktemp("checkout"), "10.79.41") as made:
        yield made


@pytest.fixture
def fleet(made: Commanded) -> Iterator[Commanded]:
    """Whose files are as they were when a test ends."""
    yield made
    made.mend()


def site(fleet: Commanded) -> Path:
    """Where the engine's packages are in the store: on this machine and, under the same name, on a node."""
    closure = json.loads(fleet.sh("spark-1", f"cat {PROFILE}/closure.json"))
    return next(Path(layer["path"]) for layer in closure["root"]["layers"] if layer["name"] == "site")


def drift(fleet: Commanded, nodes: str) -> None:
    """Put one other byte of SGLang into the engine's root of `nodes` (a list in Nix)."""
    changed = fleet.copy.path / "drift"
    shutil.copytree(site(fleet) / FOLDER, changed, ignore=shutil.ignore_patterns("__pycache__"))
    file = changed / "parallel_state.py"
    file.chmod(0o644)
    text = file.read_text()
    assert text.count(BEFORE) == 1
    file.write_text(text.replace(BEFORE, AFTER))
    fleet.git("add", "drift")
    layer = f'[ (layer {{ name = "drift"; target = "/opt/engine/{FOLDER}"; tree = source ../drift; }}) ]'
    end = "tree = model; }) ]"
    more = f"{end} ++ (if builtins.elem node {nodes} then {layer} else [ ])"
    fleet.change("nix/closure.nix", (end, more))


def test_one_rank_with_other_settings(fleet: Commanded) -> None:
    fleet.down()
    # As if its closure had been rolled out from another clone.
    text = "builtins.toJSON plans"
    other = f'builtins.replaceStrings [ "\\"timeout_s\\":30" ] [ "\\"timeout_s\\":31" ] ({text})'
    fleet.change("nix/closure.nix", (text, f'(if node == "spark-2" then {other} else {text})'))
    found = fleet.refused()
    assert f"rank 2 (spark-2) has another timeout_s of adapter {ADAPTER}: 31, the head 30" in found
    assert not fleet.on()  # no node was on before
    fleet.mend()
    fleet.up()
    assert "Paris" in fleet.ask("What is the capital of France?")


def test_sglang_with_another_byte_on_one_rank(fleet: Commanded) -> None:
    fleet.up()
    drift(fleet, '[ "spark-1" ]')
    assert "rank 1 (spark-1) has another layer drift of the engine root: sha256:" in fleet.refused()
    code, status = fleet.command("status")
    assert code == 52
    assert "drift" in json.dumps(next(row for row in status["nodes"] if row["node"] == "spark-1"))


def test_sglang_with_another_byte_on_all_ranks(fleet: Commanded) -> None:
    fleet.up()
    drift(fleet, '[ "spark-0" "spark-1" "spark-2" ]')
    found = fleet.refused()
    assert f"adapter {ADAPTER} refused: {TARGET} is not the source it was qualified on" in found
    assert any(f"rank {rank} ({node})" in found for rank, node in enumerate(NODES))
    fleet.mend()
    fleet.up()


def test_a_byte_changed_on_a_nodes_disk_after_the_copy(fleet: Commanded) -> None:
    """What no digest sees any more: only the adapter reads what it is put around."""
    fleet.up()
    file = site(fleet) / FOLDER / "parallel_state.py"
    fleet.sh("spark-1", f"sed -i 's/{BEFORE}/{AFTER}/' {file}")
    fleet.sh("spark-2", "kill -9 $(pgrep -f [s]glang::schedul)")
    until("the group to end", lambda: fleet.health() != 200, 10)
    found = fleet.refused()
    assert f"rank 1 (spark-1): adapter {ADAPTER} refused: {TARGET} is not the source" in found
    # After a power-on all contents are read again: the damaged file is replaced.
    fleet.down()
    fleet.up()
    assert "Paris" in fleet.ask("What is the capital of France?")


def raising(fleet: Commanded, options: str) -> None:
    fleet.write("src/sparkserve/adapters/raising/__init__.py", RAISING)
    fleet.write("src/sparkserve/adapters/raising/adapter.toml", DECLARED)
    code, out = fleet.copy.run("adapters", "verify", "--update", "--fleet", "local-single")
    assert code == 0, out
    fleet.change(
        "hosts/local-triangle/fleet.nix",
        ("serving.model", f"adapters.raising.enable = true;\n  {options}\n  serving.model"),
    )


def test_an_adapter_that_raises_as_it_starts(fleet: Commanded) -> None:
    raising(fleet, "")
    assert "rank 1 (spark-1): adapter raising refused: it raised RuntimeError('cold')" in fleet.refused()


def test_an_adapter_that_raises_as_it_computes(fleet: Commanded) -> None:
    raising(fleet, "adapters.raising.settings.while_serving = 1; group.startLimit = 1;")
    found = fleet.refused()
    assert "rank 1 (spark-1): adapter raising failed: " in found
    assert "RuntimeError: hot" in found
    fleet.mend()
    fleet.up()
    assert "Paris" in fleet.ask("What is the capital of France?")
