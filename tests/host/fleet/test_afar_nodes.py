"""A fleet of Sparks as its owner asks it: from a checkout that knows nothing but their addresses.

The Sparks are the nodes of local-triangle. A second checkout, whose engine is said to need a device, reaches
them over ssh with what an owner has in ~/.ssh, and must say what the first one says. No Spark has run this.
4 min on two cores.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from command_fleet import Commanded, commanded
from group_fleet import FLEET, HEAD, NODES
from nodes import attempt, until

from sparkserve.commands import PROFILE
from sparkserve.local import faults, triangle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A bind mount, as ssh takes ~ from the passwd file and not from HOME.
ROOTS_HOME = pwd.getpwuid(0).pw_dir
AT_HOME = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
DEVICE = "/dev/gpu"  # of the nodes for this test: those that each has are every engine's
# What differs between two looks at the same thing.
MOMENTS = ("uptime_s", "canary_age_s", "phase_s", "pss_bytes", "guard")


class Owner(NamedTuple):
    """Who sits at another machine: `checkout` and `home` are there, `sparks` are the nodes."""

    sparks: Commanded
    checkout: Path
    home: Path

    def shown(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command there, as people see it."""
        inner = [sys.executable, "-m", "sparkserve.cli.main", *words, "--fleet", FLEET]
        argv = ["unshare", "--mount", "sh", "-c", AT_HOME, "-", str(self.home), ROOTS_HOME, *inner]
        place = {"PYTHONPATH": f"{self.checkout}/src", "SPARKSERVE_CHECKOUT": str(self.checkout)}
        done = subprocess.run(
            argv, env={**os.environ, **place}, cwd=self.checkout, capture_output=True, text=True, timeout=900
        )
        sys.stderr.write(done.stderr)
        return done.returncode, done.stdout, done.stderr

    def asks(self, *words: str) -> tuple[int, Any]:
        """Exit code and JSON of a command there."""
        code, out, err = self.shown(*words, "--json")
        assert out, err
        return code, json.loads(out)

    def here(self, *words: str) -> tuple[int, Any]:
        """The same command on the machine of the nodes."""
        code, out = self.sparks.copy.run(*words, "--fleet", FLEET, "--json")
        return code, json.loads(out)

    def states(self) -> dict[str, str]:
        return {row["node"]: row["state"] for row in self.asks("status")[1]["nodes"]}


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    folder = tmp_path_factory.mktemp("afar")
    with commanded(folder / "checkout", "10.79.67") as sparks:
        made = Owner(sparks, folder / "owner", folder / "home")
        shutil.copytree(sparks.copy.path, made.checkout)
        files = made.checkout / f"hosts/{FLEET}/fleet.nix"
        text = files.read_text().rstrip().removesuffix("}")
        files.write_text(f'{text}\n  serving.devices = [ "{DEVICE}" ];\n  gates = [ "smoke" ];\n}}\n')
        sparks.up()
        for node in NODES:
            sparks.sh(node, f"ln -s null {DEVICE}")
        login(triangle.names(FLEET).folder, made.home / ".ssh")
        yield made


def login(fleet: Path, ssh: Path) -> None:
    """Give the owner a key of the nodes, and their host keys under their addresses."""
    ssh.mkdir(parents=True)
    shutil.copy(fleet / "id_ed25519", ssh / "sparks")
    (ssh / "config").write_text("Host spark-*\n  User root\n  IdentityFile ~/.ssh/sparks\n")
    lines = (fleet / "known_hosts").read_text().splitlines()
    known = [f"10.79.67.{rank} {line.split(' ', 1)[1]}\n" for rank, line in enumerate(lines, 1)]
    (ssh / "known_hosts").write_text("".join(known))


def lasting(said: Any) -> Any:
    """What `status --json` says, without what differs from moment to moment."""
    rows = [{name: value for name, value in row.items() if name not in MOMENTS} for row in said["nodes"]]
    return {**said, "nodes": rows}


def test_from_afar_all_is_as_it_is_said_here(owner: Owner) -> None:
    assert not (owner.checkout / ".sparkserve/local").exists()
    code, afar = owner.asks("status")
    assert (code, [row["state"] for row in afar["nodes"]]) == (0, ["ready"] * 3)
    assert lasting(afar) == lasting(owner.here("status")[1])

    words = ("logs", "-n", "5", "--part", "supervisor")
    assert owner.shown(*words)[:2] == owner.sparks.copy.run(*words, "--fleet", FLEET)
    code, out, _ = owner.shown("logs", "-n", "3")
    assert (code, len(out.splitlines())) == (0, 9)
    assert {line.split(" | ")[0] for line in out.splitlines()} == set(NODES)

    code, afar = owner.asks("verify", "--live")
    assert (code, afar["differs"], list(afar["nodes"])) == (0, False, list(NODES))
    assert afar == owner.here("verify", "--live")[1]

    code, afar = owner.asks("smoke")
    assert (code, afar["answer"]) == (0, "The capital of France is Paris.")


def test_a_node_says_what_it_can_of_its_own_fleet(owner: Owner) -> None:
    done = attempt(owner.sparks.fleet(), HEAD, f"cd / && {PROFILE}/bin/sparkserve status --json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["fleet"]) == (52, FLEET), done.stderr
    # It has no key of the others.
    assert [row["state"] for row in found["nodes"]] == ["ready", "unreachable", "unreachable"]


def test_deployed_and_compared_from_afar(owner: Owner) -> None:
    code, plan = owner.asks("deploy", "--apply")
    assert code == 0, plan
    assert owner.asks("generations")[1] == owner.here("generations")[1]
    assert owner.states() == dict.fromkeys(NODES, "ready")
    for more in ((), ("--node", "spark-1")):
        code, afar = owner.asks("diff", "1", "2", *more)
        assert code == 0 and f"devices {DEVICE}" in [each["name"] for each in afar["changes"]]
        assert afar == owner.here("diff", "1", "2", *more)[1]
    code, found = owner.asks("verify", "--live")
    assert (code, found["differs"]) == (0, False), found


def test_down_stops_what_serves_and_deploy_starts_it_again(owner: Owner) -> None:
    boots = {node: owner.sparks.sh(node, "cat /proc/sys/kernel/random/boot_id") for node in NODES}
    code, _, err = owner.shown("down")
    assert code == 0, err
    for node in NODES:
        assert attempt(owner.sparks.fleet(), node, "pgrep -f [s]glang").stdout == ""
    assert owner.states() == dict.fromkeys(NODES, "stopped")
    code, _, err = owner.shown("down")
    assert code == 0 and f"{FLEET} does not run." in err
    code, plan = owner.asks("deploy", "--apply")
    assert code == 0, plan
    assert owner.states() == dict.fromkeys(NODES, "ready")
    assert boots == {node: owner.sparks.sh(node, "cat /proc/sys/kernel/random/boot_id") for node in NODES}


def test_a_node_without_power_is_a_row_and_keeps_nobody_waiting(owner: Owner) -> None:
    faults.power_cut(owner.sparks.fleet(), "spark-1")
    until("the group to notice", lambda: owner.sparks.health() != 200, 30)
    begin = time.monotonic()
    code, _ = owner.asks("status")
    assert code == 52 and time.monotonic() - begin < 20
    states = owner.states()
    assert states.pop("spark-1") == "unreachable"
    assert set(states.values()) <= {"down", "starting", "lost"}
    assert owner.here("status")[1]["nodes"][1]["state"] == "off"
    code, out, err = owner.shown("logs", "-n", "1")
    assert (code, {line.split(" | ")[0] for line in out.splitlines()}) == (71, {"spark-0", "spark-2"})
    assert "status --fleet FLEET" in err
    code, found = owner.asks("verify")
    assert (code, list(found["nodes"]), list(found["silent"])) == (98, ["spark-0", "spark-2"], ["spark-1"])

    faults.power_cut(owner.sparks.fleet(), HEAD)
    assert owner.states() == {"spark-0": "unreachable", "spark-1": "unreachable", "spark-2": "lost"}
    code, said = owner.asks("smoke")
    assert (code, said["error"]) == (52, "ENGINE.STATE") and "unreachable" in said["found"]
