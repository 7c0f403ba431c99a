"""`fabric check`: a host as planned is clean, and each thing that is not is one difference."""

from __future__ import annotations

import json
from collections.abc import Callable  # noqa: TC003 - pytest reads the annotations
from pathlib import Path  # noqa: TC003
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from fabric_host import Host, fabric, golden

from sparkserve import commands, runner
from sparkserve.cli.main import main
from sparkserve.commands import Safety
from sparkserve.errors import SparkserveError
from sparkserve.fabric import check, host
from sparkserve.local import several, triangle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.commands import Command
    from sparkserve.fabric.check import Difference
    from sparkserve.plan import Link, Peer, Plan

PLAN = golden("tp3-triangle")[1]
FIRST = fabric(PLAN).links[0]
NAME, HCA = FIRST.interface, FIRST.hca


def found(given: Plan, root: Path, reached: bool = True) -> list[Difference]:
    def reaches(link: Link, peer: Peer) -> str | None:
        return None if reached else f"none from {peer.rank}"

    return check.differences(given, host.read(root), reaches)


@pytest.mark.parametrize("fleet", ["tp3-triangle", "tp4-ring", "tp4-switched"])
def test_a_host_as_planned_is_clean(fleet: str, tmp_path: Path) -> None:
    for given in golden(fleet):
        Host(tmp_path / given.node.name, given)
        assert found(given, tmp_path / given.node.name) == []


def extra(made: Host) -> None:
    made.addresses[NAME].append("169.254.7.7/16")
    made.settle()


def other(made: Host) -> None:
    made.addresses[NAME] = ["10.12.0.9/24"]
    made.settle()


def linklocal(made: Host) -> None:
    made.ipv6[NAME] = "fe80" + "0" * 27 + "1"
    made.settle()


def moved(made: Host) -> None:
    made.gid(HCA, 3, None)
    made.gid(HCA, 4, str(FIRST.address))


def not_mapped(made: Host) -> None:
    made.gid(HCA, 3, None)


CASES: dict[str, tuple[Callable[[Host], None], str, str, str, str]] = {
    "renamed": (
        lambda made: made.rename(NAME, "eth7"),
        *(NAME, "this interface", f"eth7 at {FIRST.pci}", "Correct ports of this node in fleet.nodes."),
    ),
    "no card": (
        lambda made: made.remove(NAME),
        *(NAME, "this interface", f"none, and nothing at {FIRST.pci}", "Correct ports"),
    ),
    "cable out": (
        lambda made: made.write(f"sys/class/net/{NAME}/carrier", "0"),
        *(NAME, "a signal", "no signal", "Plug in or change the cable from port 1 to spark-0."),
    ),
    "set down": (
        lambda made: made.write(f"sys/class/net/{NAME}/carrier", None),
        *(NAME, "a signal", "it is set down", "Activate the host closure again"),
    ),
    "wrong address": (other, NAME, "address 10.12.0.2/24", "10.12.0.9/24", "netplan"),
    "second address": (extra, NAME, "the address of the plan alone", "also 169.254.7.7/16", "Remove"),
    # Firmware capsules reset it at one end.
    "MTU": (
        lambda made: made.write(f"sys/class/net/{NAME}/mtu", "1500"),
        *(NAME, "MTU 9000", "1500", "Activate"),
    ),
    "IPv6": (linklocal, NAME, "no IPv6 address", "fe80::1", "Activate"),
    "no GID": (not_mapped, HCA, "a RoCE v2 GID with 10.12.0.2", "10.12.0.2 (IB/RoCE v1)", "down and up"),
    "ARP": (
        lambda made: made.write(f"proc/sys/net/ipv4/conf/{NAME}/arp_ignore", "0"),
        *(f"net.ipv4.conf.{NAME}.arp_ignore", "1", "0", "Activate"),
    ),
    "management": (
        lambda made: made.remove("enP7s7"),
        *("enP7s7", "this interface", " ".join(sorted(link.interface for link in fabric(PLAN).links)), "Set"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_as_planned_is_one_difference(case: str, tmp_path: Path) -> None:
    change, where, expected, there, do = CASES[case]
    change(Host(tmp_path, PLAN))
    differences = found(PLAN, tmp_path)
    assert len(differences) == 1, differences
    assert differences[0].where == where
    assert differences[0].expected.startswith(expected)
    assert differences[0].found == there
    assert do in differences[0].do


def test_another_rdma_device_behind_the_interface(tmp_path: Path) -> None:
    Host(tmp_path, PLAN)
    device = tmp_path / "sys/devices" / FIRST.pci / "infiniband"
    (device / HCA).rename(device / "mlx5_3")
    assert [(each.expected, each.found) for each in found(PLAN, tmp_path)] == [
        (f"RDMA device {HCA}", "mlx5_3")
    ]
    (device / "mlx5_3").rmdir()
    assert "mlx5_ib" in found(PLAN, tmp_path)[0].do


def test_a_gid_that_moved_matters_only_to_who_names_its_place(tmp_path: Path) -> None:
    moved(Host(tmp_path, PLAN))
    assert found(PLAN, tmp_path) == []
    env = {**PLAN.engine.env, "NCCL_IB_GID_INDEX": "3"}
    named = PLAN.model_copy(update={"engine": PLAN.engine.model_copy(update={"env": env})})
    differences = found(named, tmp_path)
    assert [(each.where, each.expected, each.found) for each in differences] == [
        (HCA, "the GID at index 3", "at 4")
    ]


def test_an_engine_without_nccl_needs_no_rdma(tmp_path: Path) -> None:
    without = golden("local-triangle")[1]
    made = Host(tmp_path, without)
    for link in fabric(without).links:
        (made.net / link.interface / "device").unlink()
    assert found(without, tmp_path) == []
    assert len(found(PLAN, tmp_path)) > 3  # which also has other addresses of management


def test_peers_are_asked_over_what_is_as_planned(tmp_path: Path) -> None:
    made = Host(tmp_path, PLAN)
    made.write(f"sys/class/net/{NAME}/carrier", "0")
    silent = [each for each in found(PLAN, tmp_path, reached=False) if each.expected.startswith("an answer")]
    assert [(each.where, each.found) for each in silent] == [
        (link.interface, f"none from {link.peers[0].rank}") for link in fabric(PLAN).links[1:]
    ]


def test_a_host_that_shows_nothing(tmp_path: Path) -> None:
    assert {each.found.split(",")[0] for each in found(PLAN, tmp_path)} == {"no interface", "none"}


def test_a_host_without_ping_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Host(tmp_path, PLAN)
    monkeypatch.setenv("PATH", str(tmp_path))
    differences = check.differences(PLAN, host.read(tmp_path), check.ping(PLAN))
    assert [(each.where, each.found) for each in differences] == [("ping", "none")]


def test_ping_sends_whole_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def run(argv: list[str], **_: object) -> SimpleNamespace:
        seen.append(argv)
        return SimpleNamespace(returncode=len(seen) - 1, stdout="", stderr="too long\n")

    monkeypatch.setattr("subprocess.run", run)
    reaches = check.ping(PLAN)
    assert reaches(FIRST, FIRST.peers[0]) is None
    assert reaches(FIRST, FIRST.peers[0]) == "too long"
    words = " ".join(seen[0])
    # 9000 bytes with the 28 of its headers.
    assert words.endswith("-M do -s 8972 -I enp1s0f1np1 10.12.0.1")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Host(tmp_path / "root", PLAN)
    real = host.read
    monkeypatch.setattr(host, "read", lambda: real(tmp_path / "root"))
    monkeypatch.setattr(check, "ping", lambda plan: lambda link, peer: None)
    file = tmp_path / "plan.json"
    file.write_text(PLAN.model_dump_json(by_alias=True))
    assert ended(["fabric", "check", "--plan", str(file)]) == 0
    assert "As planned: spark-1." in capsys.readouterr().err
    made.write(f"sys/class/net/{NAME}/mtu", "1500")
    assert ended(["fabric", "check", "--plan", str(file), "--json"]) == 63
    printed = json.loads(capsys.readouterr().out)
    assert [(each["where"], each["found"]) for each in printed["spark-1"]] == [(NAME, "1500")]
    assert ended(["fabric", "check", "--plan", str(file)]) == 63
    assert "MTU 9000" in capsys.readouterr().out


def ended(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_single_node_has_no_cables(tmp_path: Path) -> None:
    with pytest.raises(SparkserveError, match="topology single"):
        found(golden("local-single")[0], tmp_path)


def test_a_laptop_fleet_is_asked_node_by_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each way that a node answers: as planned, with a difference, not at all, and of an older version."""
    names = [f"node-{n}" for n in range(4)]
    line = commands.check_fabric().line()
    wrong = {"where": NAME, "expected": "a signal", "found": "no signal", "do": "Plug it in."}

    class Silent(runner.Recorded):
        def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> runner.Result:
            if node == "node-2":
                raise SparkserveError(
                    "NODE.UNREACHABLE", expected="ssh", found="no route", where=node, do="Look."
                )
            return super().run(node, command, feed=feed)

    answers: dict[tuple[str, str] | str, runner.Result] = {
        ("node-0", line): runner.Result(0, '{"node-0": []}'),
        ("node-1", line): runner.Result(63, json.dumps({"node-1": [wrong]})),
        ("node-3", line): runner.Result(2, "", "Usage: sparkserve\nError: No such command 'fabric'.\n"),
    }
    asked = Silent(answers, allow=Safety.READS_HOSTS)
    monkeypatch.setattr(several, "exists", lambda fleet: True)
    monkeypatch.setattr(several, "connect", lambda there: asked)
    monkeypatch.setattr(triangle, "load", lambda fleet: SimpleNamespace(nodes=names))
    assert ended(["fabric", "check", "local-triangle"]) == 63
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == ["node-1", "node-2", "node-3"]
    assert ended(["fabric", "check", "local-triangle", "--json"]) == 63
    printed = json.loads(capsys.readouterr().out)
    assert printed["node-0"] == []
    assert printed["node-1"] == [wrong]
    assert printed["node-2"][0]["found"] == "no route"
    assert printed["node-3"][0]["found"] == "Error: No such command 'fabric'."
