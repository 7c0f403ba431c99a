"""What a laptop node shows that it has not: RDMA devices, settings of its own, GRUB's arguments."""

from __future__ import annotations

import ipaddress
import random
import subprocess
from typing import TYPE_CHECKING, Any

from local_values import NAMES, PLANS

from sparkserve.local import hca, inner, network

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_function_of_a_port_has_its_rdma_device_with_gids_in_the_drivers_order() -> None:
    plan = PLANS[1]
    assert plan.fabric is not None
    mac = "02:11:22:33:44:55"
    found = hca.files(plan, lambda interface: mac)
    assert {path.split("/")[1] for path in found} == {link.hca for link in plan.fabric.links}
    for link in plan.fabric.links:
        port = f"infiniband/{link.hca}/ports/1"
        assert found[f"{port}/state"] == "4: ACTIVE\n"
        types = [found[f"{port}/gid_attrs/types/{index}"].strip() for index in range(4)]
        assert types == ["IB/RoCE v1", "RoCE v2"] * 2
        gids = [ipaddress.IPv6Address(found[f"{port}/gids/{index}"].strip()) for index in range(4)]
        # RFC 4291, section 2.5.5.2; index 3 is what NCCL takes: IPv4 and RoCE v2.
        assert gids[3].ipv4_mapped == link.address
        # RFC 4291, appendix A, by hand for this MAC.
        assert gids[0] == gids[1] == ipaddress.IPv6Address("fe80::11:22ff:fe33:4455")
        assert found[f"infiniband/{link.hca}/device/net/{link.interface}/address"] == f"{mac}\n"


def test_macs_differ_between_the_devices_of_a_fleet() -> None:
    gids = {
        text
        for plan in PLANS
        for path, text in hca.files(plan, lambda name: network.hardware_address(NAMES, plan, name)).items()  # noqa: B023
        if path.endswith("gids/0")
    }
    assert len(gids) == 12


def test_a_node_gets_its_own_copy_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mounts: list[list[str]] = []
    real = subprocess.run

    def run(argv: list[str], **given: Any) -> object:
        mounts.append(argv)
        return real(["true"], **given)

    monkeypatch.setattr(subprocess, "run", run)
    value = str(random.randrange(1000))  # noqa: S311 - any number
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "sys/vm/swappiness").write_text(f"{value}\n")
    (tmp_path / "sys/vm/drop_caches").write_text("")
    (tmp_path / "sys/vm/drop_caches").chmod(0o200)
    (tmp_path / "sys/panic").write_text("0\n")
    for path in ("vm", "panic", "not_in_this_kernel"):
        inner.do({"do": "own", "path": f"sys/{path}", "copy": f"own/{path}"})
    assert (tmp_path / "own/vm/swappiness").read_text() == f"{value}\n"
    assert (tmp_path / "own/vm/drop_caches").stat().st_mode & 0o777 == 0o200
    assert (tmp_path / "own/panic").read_text() == "0\n"
    assert mounts == [["mount", "--bind", f"own/{path}", f"sys/{path}"] for path in ("vm", "panic")]


def test_the_command_line_is_what_grub_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    step = {"do": "cmdline", "path": "cmdline", "menu": "grub.cfg", "without": "quiet splash"}
    inner.do(step)
    assert (tmp_path / "cmdline").read_text() == "quiet splash\n"
    (tmp_path / "grub.cfg").write_text(
        "menuentry x {\n  linux /boot/vmlinuz ro  a=1 kho=off\n}\nlinux /other b\n"
    )
    inner.do(step)
    assert (tmp_path / "cmdline").read_text() == "BOOT_IMAGE=/boot/vmlinuz ro a=1 kho=off\n"
    (tmp_path / "grub.cfg").write_text("nothing\n")
    inner.do(step)
    assert (tmp_path / "cmdline").read_text() == "quiet splash\n"
