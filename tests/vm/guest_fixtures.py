"""The guest that tests of this folder share: `./sparkserve check --only vm`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import guest as machine
import pytest

from sparkserve import checkout, nix
from sparkserve.fleet import plans

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.plan import Plan

FLEET = "local-triangle"
DISK = "3G"


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The plan of the node that the guest is."""
    return plans.load(FLEET)[0]


@pytest.fixture(scope="session")
def closure(plan: Plan) -> Path:
    """The host closure of that node."""
    return _built(plans.host(plan))


@pytest.fixture(scope="session")
def guest(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[machine.Guest]:
    """A fresh guest that is up, with nothing of ours on it."""
    folder = tmp_path_factory.mktemp("guest")
    kernel = _built("vm-kernel")
    disk = folder / "disk.img"
    subprocess.run(["truncate", "-s", DISK, str(disk)], check=True)
    mkfs = _built("node-tools") / "bin/mkfs.ext4"
    subprocess.run([str(mkfs), "-q", "-d", f"{_built('vm-root')}/", str(disk)], check=True)
    _give(folder, kernel, plan)
    assert plan.fabric is not None
    made = machine.Guest(folder, kernel, str(plan.fabric.management.address))
    try:
        made.start()
        yield made
    finally:
        if made.process is not None:
            made.process.kill()
            made.process.wait()
        shutil.rmtree(folder)


def _built(attribute: str) -> Path:
    name = attribute.replace(".", "-")
    return nix.build([attribute], out_link=checkout.state() / "vm" / name, on_line=print)[0]


def _give(folder: Path, kernel: Path, plan: Plan) -> None:
    """What makes it this node: name, keys, modules of its kernel, and the names of its network ports."""
    given = folder / "given"
    network = given / "etc/systemd/network"
    network.mkdir(parents=True)
    (given / "etc/hostname").write_text(f"{plan.node.name}\n")
    for path, comment in ((folder / "key", "test"), (given / "etc/ssh/ssh_host_ed25519_key", "host")):
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True
        )
    keys = given / "root/.ssh/authorized_keys"
    keys.parent.mkdir(parents=True, mode=0o700)
    shutil.copy(folder / "key.pub", keys)
    (given / "usr/lib").mkdir(parents=True)
    (given / "usr/lib/modules").symlink_to(kernel / "lib/modules")
    for number, name in enumerate((machine.MANAGEMENT, *machine.CABLES)):
        link = f"[Match]\nMACAddress={machine.mac(number)}\n[Link]\nName={name}\n"
        (network / f"10-{name}.link").write_text(link)
    # A Spark's owner has set this up before we come.
    assert plan.fabric is not None
    management = plan.fabric.management
    (network / "10-management.network").write_text(
        f"[Match]\nName={management.interface}\n[Network]\nAddress={management.address}/{management.prefix}\n"
    )
