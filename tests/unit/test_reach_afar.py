"""The way to Sparks: their addresses, a node that is one of them, a port that ssh forwards."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, cast

import pytest
from local_values import GOLDEN, PLANS

from sparkserve import commands, plan
from sparkserve.errors import SparkserveError
from sparkserve.reach import afar
from sparkserve.reach.afar import Afar
from sparkserve.runner import SSH, Local, Recorded, Result

if TYPE_CHECKING:
    from pathlib import Path

NODES = [each.node.name for each in PLANS]
HEAD = NODES[0]
SHELL = shutil.which("sh")
SPARKS = plan.load(GOLDEN.parent / "tp3-triangle/spark-0.json")
READ = commands.read_closures(commands.PROFILE).line()


def test_sparks_are_reached_by_their_addresses_and_the_owners_own_settings() -> None:
    assert afar.config(PLANS[0]) == (
        "Host spark-0\n  HostName 10.77.0.1\nHost spark-1\n  HostName 10.77.0.2\n"
        "Host spark-2\n  HostName 10.77.0.3\n"
        "Host *\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n  User root\n"
    )


def test_a_node_reaches_itself_without_ssh(tmp_path: Path) -> None:
    text = PLANS[1].model_dump_json()
    (tmp_path / "current").mkdir()
    (tmp_path / "current/plan.json").write_text(text)
    found = afar.from_node([tmp_path / "none", tmp_path / "current"])
    assert (found.own, found.nodes) == ("spark-1", list(NODES))
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer/plan.json").write_text(text.replace('"gates"', '"proofs"'))
    assert afar.from_node([tmp_path / "newer", tmp_path / "current"]) == found
    with pytest.raises(SparkserveError, match=r"PLAN\.SCHEMA"):
        afar.from_node([tmp_path / "newer", tmp_path / "none"])
    command = commands.reads(sys.executable, "-c", "print('near')")
    others = cast("SSH", Recorded({command.line(): Result(0, "afar\n")}))
    runner = afar.Among("spark-1", Local(), others)
    assert [runner.run(node, command).out for node in NODES] == ["afar\n", "near\n", "afar\n"]
    with pytest.raises(SparkserveError, match="a sparkserve checkout, or a node"):
        afar.from_node([tmp_path / "none"])


@pytest.mark.parametrize(
    "file", sorted(GOLDEN.parent.glob("*/spark-0.json")), ids=lambda file: file.parent.name
)
def test_a_fleet_whose_engine_needs_devices_is_one_of_sparks(file: Path) -> None:
    assert afar.needed(plan.load(file)) == file.parent.name.startswith("tp")


def current(value: object) -> Recorded:
    text = value if isinstance(value, str) else json.dumps(value)
    return Recorded({(HEAD, READ): Result(0, f"{text}\0{{}}\0[]\0")})


def test_what_the_head_runs_by_is_its_own_word() -> None:
    value = SPARKS.model_dump(mode="json")
    value["serving"]["port"] = 9999
    found = Afar(SPARKS).current(current(value))
    assert (found.serving.port, found.node.name) == (9999, HEAD)


def test_a_head_without_a_plan_of_this_fleet_is_told_apart() -> None:
    other = PLANS[0].model_dump(mode="json")
    newer = SPARKS.model_dump(mode="json") | {"proofs": []}
    cases = {
        "ENGINE.STATE: .* found none; .* deploy --apply --fleet tp3-triangle": "",
        "ENGINE.STATE: .* of the fleet tp3-triangle; found one of the fleet local-triangle; .* status": other,
        "PLAN.SCHEMA: .* another version: .* found proofs": newer,
        "PLAN.SCHEMA: .* that this version of sparkserve reads; found one of another": "no JSON",
    }
    for said, value in cases.items():
        with pytest.raises(SparkserveError, match=said):
            Afar(SPARKS).current(current(value))


def test_the_endpoint_is_a_port_that_ends_with_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!{SHELL}\necho "$@" >>{tmp_path}/calls\ncp "$2" {tmp_path}/config\necho; cat\n')
    ssh.chmod(0o755)
    with Afar(SPARKS).endpoint(SPARKS.serving) as endpoint:
        port = int(endpoint.removeprefix("http://127.0.0.1:"))
    assert f"-L 127.0.0.1:{port}:127.0.0.1:8888 -T spark-0 -- sh -c" in (tmp_path / "calls").read_text()
    assert (tmp_path / "config").read_text() == afar.config(SPARKS)
    assert list((tmp_path / "run/sparkserve").iterdir()) == []
    with Afar(SPARKS, own=HEAD).endpoint(SPARKS.serving) as endpoint:
        assert endpoint == SPARKS.serving.endpoint  # the head itself
    said = "ssh: connect to host spark-0 port 22: No route to host"
    ssh.write_text(f"#!{SHELL}\necho '{said}' >&2; exit 255\n")
    with (
        pytest.raises(SparkserveError, match=r"NODE\.UNREACHABLE.*No route to host"),
        Afar(SPARKS).endpoint(SPARKS.serving),
    ):
        pass
