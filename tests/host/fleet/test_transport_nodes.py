"""Closures into the stores of real nodes: over SSH, through a power cut, with a full disk. 60 s."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import nodes
import pytest
from nodes import attempt, ssh, until

from sparkserve import commands, nix
from sparkserve.commands import Safety
from sparkserve.errors import SparkserveError
from sparkserve.local import faults, triangle
from sparkserve.runner import SSH, check
from sparkserve.transport import deliver
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sparkserve.local.record import Fleet

    Build = Callable[..., Path]

NODES = ("spark-0", "spark-1", "spark-2")
# Two paths, the second with a reference to the first; `salt` changes the recipe and not the contents.
CLOSURE = """
{ salt, text }:
let
  busybox = builtins.storePath "%s" + "/busybox";
  sh = name: script: derivation {
    inherit name script salt busybox;
    system = "x86_64-linux";
    builder = busybox;
    args = [ "sh" "-c" "eval \\"$script\\"; exit 0" ];
  };
  lower = sh "lower" ''
    $busybox mkdir $out
    echo ${text} >$out/lower
    $busybox dd if=/dev/zero of=$out/zeros bs=1k count=64 2>&1
  '';
in
sh "upper-${text}" "$busybox mkdir $out; echo ${lower} $out >$out/paths"
"""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    plans = nodes.plans("transport", "10.79.32")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(nodes.ROOT))
        try:
            yield triangle.power_on(plans)
        finally:
            triangle.down(plans[0].fleet.name, disks=True)


@pytest.fixture
def runner(fleet: Fleet) -> Iterator[SSH]:
    with SSH(fleet.ssh_config, Safety.STOPS_SERVING, fleet.environment) as made:
        yield made


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("closure")
    (folder / "closure.nix").write_text(CLOSURE % nodes.busybox())

    def made(text: str, salt: str = "") -> Path:
        argv = ["nix-build", "--no-out-link", str(folder / "closure.nix"), "--argstr", "text", text]
        argv += ["--argstr", "salt", salt]
        done = subprocess.run(argv, capture_output=True, text=True, env=nix.environment())
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    return made


def test_two_recipes_with_equal_contents_are_one_path(build: Build, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
        (tmp_path / ".sparkserve/roots").mkdir(parents=True)
        one, two = build("same", "1"), build("same", "2")
        assert one != two
        assert len(set(addressed([one, two]))) == 1
        assert addressed([two]) == addressed([one])
        assert addressed([one])[0].name.endswith("-upper-same")
        lower, own = (addressed([one])[0] / "paths").read_text().split()
        assert own == str(addressed([one])[0])
        assert Path(lower, "lower").read_text() == "same\n"


def test_delivered_switched_and_listed(fleet: Fleet, runner: SSH, build: Build) -> None:
    paths = [build("first"), build("second")]
    for path in paths:
        deliver.deliver(runner, dict.fromkeys(NODES, path))
        for node in NODES:
            deliver.switch(runner, node, path)
    for node in NODES:
        found = deliver.generations(runner, node)
        assert [(each.path, each.current) for each in found[-2:]] == [
            (str(paths[0]), False),
            (str(paths[1]), True),
        ]
        assert ssh(fleet, node, "cat /nix/var/nix/profiles/sparkserve/paths").endswith(str(paths[1]))
        assert ssh(fleet, node, "ls -A /nix/var/nix/gcroots/sparkserve") == ""


def test_a_power_cut_after_the_copy_is_seen_and_repaired(fleet: Fleet, runner: SSH, build: Build) -> None:
    path = build("cut")
    node = "spark-1"
    check(runner, node, commands.hold("incoming", str(path)))
    runner.send(node, path)
    ssh(fleet, node, "sync -f /nix/var/nix/db")  # the database survives
    lower = (path / "paths").read_text().split()[0]
    ssh(fleet, node, f"chmod u+w {lower}/zeros; : >{lower}/zeros; sync")  # and the contents do not
    faults.power_cut(fleet, node)
    faults.power_on(fleet, node)
    until("the node to answer", lambda: attempt(fleet, node, "true").returncode == 0, 30)
    assert ssh(fleet, node, f"nix-store --check-validity {lower} && stat -c %s {lower}/zeros") == "0"
    deliver.deliver(runner, {node: path})
    assert ssh(fleet, node, f"stat -c '%s %a' {lower}/zeros") == "65536 444"
    assert runner.run(node, commands.verify(str(path), lower)).code == 0


def test_a_lost_file_is_repaired_too(fleet: Fleet, runner: SSH, build: Build) -> None:
    path = build("lost")
    deliver.deliver(runner, {"spark-2": path})
    ssh(fleet, "spark-2", f"rm -rf {path} /run/sparkserve/verified")
    deliver.deliver(runner, {"spark-2": path})
    assert ssh(fleet, "spark-2", f"cat {path}/paths").endswith(str(path))


def test_a_held_closure_survives_the_garbage_collector(fleet: Fleet, runner: SSH, build: Build) -> None:
    path = build("held")
    deliver.deliver(runner, {"spark-0": path})
    ssh(fleet, "spark-0", f"nix-collect-garbage >/dev/null 2>&1; test -e {path}/paths")


def test_a_node_that_is_off_is_named(fleet: Fleet, runner: SSH, build: Build) -> None:
    faults.power_off(fleet, "spark-2")
    try:
        with pytest.raises(SparkserveError) as caught:
            deliver.deliver(runner, dict.fromkeys(NODES, build("off")))
        assert (caught.value.id, caught.value.where) == ("NODE.UNREACHABLE", "spark-2")
    finally:
        faults.power_on(fleet, "spark-2")
        until("the node to answer", lambda: attempt(fleet, "spark-2", "true").returncode == 0, 30)
    deliver.deliver(runner, {"spark-2": build("off")})


def test_quoting_through_a_real_shell_and_ssh(runner: SSH) -> None:
    words = ("a b", "$HOME", "it's", "*", "a\nb", "", "~", "ü", ";", '"', "\\")
    out = check(runner, "spark-0", commands.reads("printf", "%s|", *words))
    assert out == "".join(f"{word}|" for word in words)


def test_nothing_of_ssh_stays(fleet: Fleet) -> None:
    with SSH(fleet.ssh_config, env=fleet.environment) as made:
        made.run("spark-0", commands.reads("true"))
        folder = str(made.config.parent)
    assert subprocess.run(["pgrep", "-f", folder], capture_output=True).returncode == 1
