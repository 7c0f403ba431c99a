"""What the policy modules promise of a Spark, asked of rendered files. Fleets are random where it matters."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import evaluated
import pytest
from evaluated import ROOT

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = random.Random()  # noqa: S311 - fresh values, no secrets
Plan = dict[str, Any]


@pytest.fixture(scope="module")
def sparks() -> list[Plan]:
    """The plans of every node of a fleet of hosts/ that is of DGX OS."""
    found = [plan for nodes in evaluated.plans(ROOT / "hosts").values() for plan in nodes.values()]
    return [plan for plan in found if plan["host"]["kernel"] is not None]


def fleet(hosts: Path, name: str, text: str, base: str = "usual", arguments: str = "lib") -> None:
    (hosts / name).mkdir(parents=True)
    imports = f"imports = [ {ROOT}/tests/policy/hosts/{base}/fleet.nix ];"
    (hosts / name / "fleet.nix").write_text(f"{{ {arguments}, ... }}: {{ {imports} {text} }}\n")


def settings(plan: Plan, unit: str) -> list[str]:
    """The lines of a unit and of what is rendered for it."""
    texts = [plan["host"]["units"].get(unit, "")]
    files = plan["host"]["files"].items()
    texts += [file["text"] for path, file in files if path.startswith(f"/etc/systemd/system/{unit}.d/")]
    return "\n".join(texts).splitlines()


def memory_min(lines: list[str]) -> int:
    return sum(int(line[len("MemoryMin=") : -1]) for line in lines if re.fullmatch(r"MemoryMin=\d+M", line))


def test_kernels_from_7_run_without_handover(tmp_path: Path) -> None:
    # NV-Kernels#590: with it RDMA registration ends with ENOMEM.
    majors = {f"major-{major}": major for major in RANDOM.sample(range(5, 30), 8)}
    for name, major in majors.items():
        minor, build = RANDOM.randrange(20), RANDOM.randrange(2000)
        fleet(tmp_path, name, f'kernel.release = "{major}.{minor}.0-{build}-nvidia";')
    fleet(tmp_path, "newest", "")
    for name, plans in evaluated.plans(tmp_path).items():
        for plan in plans.values():
            grub = plan["host"]["files"]["/etc/default/grub.d/zz-sparkserve.cfg"]["text"]
            without = majors.get(name, 7) >= 7
            assert ("kho=off" in plan["host"]["kernel_args"], "kho=off" in grub) == (without, without), name


def test_every_rank_may_pin_memory_and_compiles_two_kernels_at_a_time(sparks: list[Plan]) -> None:
    assert sparks
    for plan in sparks:
        # nccl#1925, and four nodes that 22 compilers reset.
        assert "LimitMEMLOCK=infinity" in settings(plan, "sparkserve-rank.service")
        assert int(plan["engine"]["env"]["MAX_JOBS"]) <= 2


def test_a_gpu_engine_gets_the_devices_of_its_plan_and_no_other(sparks: list[Plan]) -> None:
    gpus = [plan for plan in sparks if plan["engine"]["devices"]]
    assert gpus
    for plan in gpus:
        lines = settings(plan, "sparkserve-rank.service")
        assert "DevicePolicy=closed" in lines
        allowed = [line.removeprefix("DeviceAllow=") for line in lines if line.startswith("DeviceAllow=")]
        assert allowed == [f"{device} rw" for device in plan["engine"]["devices"]]
        assert {"/dev/nvidia0", "/dev/infiniband/rdma_cm"} <= set(plan["engine"]["devices"])


def test_what_services_keep_is_no_more_than_their_slice_does(tmp_path: Path) -> None:
    # cgroup v2: a parent's memory.min bounds that of all its children together.
    names = ["ssh.service", *(f"s{n}.service" for n in range(RANDOM.randint(0, 4)))]
    kept = {name: RANDOM.randint(16, 1024) for name in names}
    protect = " ".join(f'"{unit}" = {mib};' for unit, mib in kept.items())
    fleet(tmp_path, "kept", f"recovery.protect = {{ {protect} }};")
    for plan in evaluated.plans(tmp_path)["kept"].values():
        units = {*plan["host"]["units"], "system.slice", *kept}
        found = {unit: memory_min(settings(plan, unit)) for unit in units}
        of_slice = found.pop("system.slice")
        assert {unit: found[unit] for unit in kept} == kept
        assert of_slice >= sum(found.values())


@pytest.mark.parametrize("topology", ["pair", "triangle", "switched"])
def test_the_heads_weights_go_to_the_other_ends_of_its_cables_only(tmp_path: Path, topology: str) -> None:
    size = {"pair": 2, "triangle": 3}.get(topology, RANDOM.randint(3, 9))
    nodes = " ".join(f'{{ name = "n{n}"; address = "192.168.7.{n + 1}"; }}' for n in range(size))
    own = f'fleet.topology = lib.mkForce "{topology}"; fleet.nodes = lib.mkForce [ {nodes} ];'
    fleet(tmp_path, "shared", f'{own} weights.source = "nfs";')
    head, *workers = evaluated.plans(tmp_path)["shared"].values()
    exports = head["host"]["files"]["/etc/exports.d/sparkserve.exports"]["text"]
    folder, *clients = exports.split()
    ends = [peer["address"] for link in head["fabric"]["links"] for peer in link["peers"]]
    assert sorted(client.split("(")[0] for client in clients) == sorted(ends)
    for client in clients:
        # Without crossmnt a disk mounted below the folder is an empty folder to others.
        assert {"ro", "crossmnt"} <= set(client.split("(")[1].rstrip(")").split(","))
    own_addresses = {link["address"] for link in head["fabric"]["links"]}
    for worker in workers:
        assert not any(path.startswith("/etc/exports") for path in worker["host"]["files"])
        mount = settings(worker, "srv-sparkserve-weights.mount")
        server, path = next(line for line in mount if line.startswith("What="))[5:].split(":")
        assert path == folder and server in own_addresses
        assert f"RequiresMountsFor={folder}" in settings(worker, "sparkserve-rank.service")
    assert "srv-sparkserve-weights.mount" not in head["host"]["units"]


def test_a_lost_clock_comes_back_within_a_minute() -> None:
    for plan in evaluated.plans(ROOT / "tests/policy/hosts")["everything"].values():
        timer = dict(line.split("=", 1) for line in settings(plan, "sparkserve-clocks.timer") if "=" in line)
        assert int(timer["OnUnitActiveSec"]) + int(timer["AccuracySec"]) <= 60
        commands = [line for line in settings(plan, "sparkserve-clocks.service") if "ExecStart" in line]
        assert any("--lock-gpu-clocks=0,2000" in line for line in commands)
        # A unit that remained active would not be started again.
        assert not any("RemainAfterExit" in line for line in settings(plan, "sparkserve-clocks.service"))


def test_nodes_of_one_engine_may_differ_in_what_is_their_own(tmp_path: Path) -> None:
    # tests/refused/ranks-with-* has what they may not differ in.
    other = "lib.mkForce (if config.node.rank == 2 then %s else %s);"
    threads, floor = RANDOM.sample(range(2, 9), 2), RANDOM.sample(range(512, 1000), 2)
    own = f"engine.env.OMP_NUM_THREADS = {other % tuple(f'{chr(34)}{n}{chr(34)}' for n in threads)}"
    fleet(
        tmp_path, "differ", f"{own} guard.steady.floorMiB = {other % tuple(floor)}", arguments="lib, config"
    )
    plans = evaluated.plans(tmp_path)["differ"].values()
    assert [plan["engine"]["env"]["OMP_NUM_THREADS"] for plan in plans] == [
        str(threads[n]) for n in (1, 1, 0)
    ]
    assert [plan["guard"]["steady"]["floor_mib"] for plan in plans] == [floor[n] for n in (1, 1, 0)]


def test_a_spark_alone_has_nothing_for_the_unit_of_a_rank() -> None:
    (plan,) = evaluated.plans(ROOT / "tests/policy/hosts")["alone"].values()
    assert "/etc/sysctl.d/zz-sparkserve.conf" in plan["host"]["files"]
    named = [*plan["host"]["files"], *plan["host"]["units"]]
    assert [name for name in named if "sparkserve-rank" in name] == []
    assert [text for text in plan["host"]["units"].values() if "sparkserve-rank" in text] == []
