"""The endpoint's key is in no plan and in nothing that a host closure is built of, only its path is.

A fleet is evaluated with a key that nobody has seen, in a file that is there: a build of its head would read
what is searched here, every derivation and every source of it. Costs: a second.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import evaluated
import pytest
from evaluated import ROOT

from sparkserve import nix

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose files may be named in serving.apiKeyFile, which takes none below /tmp."""
    made = Path(tempfile.mkdtemp(prefix="sparkserve-key-", dir="/dev/shm"))
    yield made
    shutil.rmtree(made)


def built_of(hosts: Path, fleet: str) -> list[Path]:
    """The store paths that a build of the fleet's head starts from."""
    plans = f"{evaluated.fleets(hosts)}.{fleet}.plans"
    made = (
        f'(import {ROOT}/nix {{ system = "x86_64-linux"; }}).host '
        f'{{ fleet = "{fleet}"; node = "spark-0"; plans = {plans}; }}'
    )
    environment = nix.environment()
    argv = ["nix-instantiate", "--expr", made]
    drv = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    argv = ["nix-store", "--query", "--requisites", drv]
    found = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    return [Path(line) for line in found.stdout.splitlines()]


def holding(paths: list[Path], key: str) -> list[str]:
    """The names of files in store paths that have the key in them."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return [file.name for file in files if file.is_file() and key.encode() in file.read_bytes()]


def test_only_the_path_of_a_key_leaves_its_file(tmp_path: Path, folder: Path) -> None:
    key = secrets.token_hex(32)
    file = folder / "api-key"
    file.touch(0o600)
    file.write_text(f"{key}\n")
    fleets = {
        "keyed": f'serving.host = "10.77.0.1"; serving.apiKeyFile = "{file}";',
        "told": f'host.files."/etc/sparkserve/words".text = "{key}";',  # what the search must find
    }
    for name, words in fleets.items():
        (tmp_path / name).mkdir()
        base = f"imports = [ {ROOT}/tests/policy/hosts/usual/fleet.nix ];"
        (tmp_path / name / "fleet.nix").write_text(f"{{ {base} {words} }}\n")
    plans = evaluated.plans(tmp_path)
    assert plans["keyed"]["spark-0"]["serving"]["api_key_file"] == str(file)
    assert key not in json.dumps(plans["keyed"])
    paths = built_of(tmp_path, "keyed")
    assert len(paths) > 100
    assert holding(paths, key) == []
    named = {name.partition("-")[2] for name in holding(paths, str(file))}
    assert {"closure-keyed-spark-0.drv"} <= named
    assert holding(built_of(tmp_path, "told"), key) != []
