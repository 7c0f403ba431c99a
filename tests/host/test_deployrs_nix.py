"""`deploy` for other fleets than ours: which nodes it has, and what deploy-rs hears of the rest. 1 s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import evaluated
import pytest
from evaluated import ROOT

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

NODES = '[ { name = "%s"; address = "192.168.7.1"; } { name = "%s"; address = "192.168.7.2"; } ]'
FLEET = '{ fleet.topology = "switched"; fleet.nodes = %s; serving.model = "smollm2-135m"; }'
# What no pair of another fleet and node may be taken for.
ALIKE = {"a": ("b-c", "c"), "a-b": ("c", "d")}


def deploy(hosts: Path, apply: str) -> Any:
    """What a function of Nix makes of `deploy`; a closure's path is the fleet's name and the node's."""
    text = (
        f"let inherit (builtins) mapAttrs; lib = import {ROOT}/nix/lib; fleets = {evaluated.fleets(hosts)}; "
        f"hosts = mapAttrs (fleet: each: mapAttrs (node: _: fleet + node) each.plans) fleets; "
        f"in ({apply}) (import {ROOT}/nix/deploy-rs.nix {{ inherit lib fleets hosts; }})"
    )
    return evaluated.value(text)


def narrowed(name: str) -> str:
    """As deploy-rs asks for one target."""
    return f'deploy: (deploy // {{ nodes = {{ inherit (deploy.nodes) "{name}"; }}; }})'


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    texts = {name: FLEET % (NODES % nodes) for name, nodes in ALIKE.items()}
    texts["alone"] = (
        '{ fleet.nodes = [ { name = "d"; address = "127.0.0.1"; } ]; serving.model = "smollm2-135m"; }'
    )
    texts["broken"] = FLEET % (NODES % ("same", "same"))
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "fleet.nix").write_text(text)
    return tmp_path


def test_every_node_of_several_has_a_name_of_its_own(hosts: Path) -> None:
    names = deploy(hosts, "deploy: builtins.attrNames deploy.nodes")
    assert names == ["_all", "a-b_c", "a-b_d", "a_b-c", "a_c", "broken"]
    found = {name: deploy(hosts, narrowed(name))["nodes"][name] for name in names[1:-1]}
    profiles = {name: node["profiles"]["sparkserve"]["path"] for name, node in found.items()}
    assert profiles == {"a-b_c": "a-bc", "a-b_d": "a-bd", "a_b-c": "ab-c", "a_c": "ac"}
    assert found["a_c"]["hostname"] == "192.168.7.2"


def test_not_all_at_once_and_not_what_is_broken(hosts: Path) -> None:
    with pytest.raises(SparkserveError) as error:
        deploy(hosts, "deploy: deploy")
    assert (error.value.id, "--targets" in error.value.do) == ("CLI.USAGE", True)
    with pytest.raises(SparkserveError, match="2 nodes are named same"):
        deploy(hosts, narrowed("broken"))
