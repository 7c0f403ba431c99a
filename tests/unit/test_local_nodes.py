"""What a node's start does, its keys and cgroups, and the pump of the public port, without root."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from local_values import NAMES, PLANS, TAG

from sparkserve.errors import SparkserveError
from sparkserve.local import boot, cgroups, forward, keys, machine, record
from sparkserve.local.cgroups import Cgroups, Hierarchy
from sparkserve.local.tools import Tools

V1 = Cgroups((Hierarchy(Path("/cg/memory"), "memory"), Hierarchy(Path("/cg/systemd"), "name=systemd")))
V2 = Cgroups((Hierarchy(Path("/cg"), ""),))
NODE = "/state/local/desk/spark-1"


def told(step: boot.Step) -> str:
    """A step in one line."""
    match step["do"]:
        case "run":
            return " ".join(step["argv"])
        case "file":
            return f"{step['path']} = {step['text']!r}"
        case "link":
            return f"{step['path']} -> {step['target']}"
        case "copy":
            return f"{step['path']} <- {step['source']} {step['mode']:o}"
        case "folder":
            return f"{step['path']}/ {step['mode']:o}"
    return " ".join(str(value) for value in step.values())


def steps(groups: Cgroups) -> list[str]:
    sizes = boot.Sizes(shm_mib=64)
    return [told(step) for step in boot.steps(NAMES, PLANS, PLANS[1], Path("/base"), sizes, groups, "an-id")]


def test_the_whole_start_of_a_node() -> None:
    found = steps(V1)
    machine_id = next(line for line in found if line.startswith("etc/machine-id"))
    assert len(machine_id.split("'")[1].removesuffix("\\n")) == 32
    found.remove(machine_id)
    devices = [line for line in found if line.startswith("run/host/class/infiniband/")]
    found = [line for line in found if line not in devices]
    assert found == [
        f"enter {NODE}",
        "mount -o loop disk.img disk",
        "disk/upper/ 755",
        "disk/work/ 755",
        "disk/nix/store/ 755",
        "disk/nix/var/nix/ 755",
        "mount -t overlay overlay -o lowerdir=/base,upperdir=disk/upper,workdir=disk/work root",
        "enter root",
        "mount --bind ../disk/nix nix",
        "mount -t tmpfs tmpfs run -o mode=755,size=256M",
        "run/lock/ 755",
        "run/host/ 755",
        "mount -t proc proc proc -o nosuid,nodev,noexec",
        "mount --bind proc/sys proc/sys",
        "mount -o remount,bind,ro,nosuid,nodev,noexec proc/sys",
        "mount --bind proc/sys/net proc/sys/net",
        "mount -o remount,bind,rw proc/sys/net",
        "run/host/boot_id = 'an-id\\n'",
        "mount --bind run/host/boot_id proc/sys/kernel/random/boot_id",
        "cmdline run/host/cmdline boot/grub/grub.cfg BOOT_IMAGE=/boot/vmlinuz ro quiet splash",
        "mount --bind run/host/cmdline proc/cmdline",
        "own proc/sys/vm run/host/sys/vm",
        *(
            f"own proc/sys/kernel/{name} run/host/sys/kernel/{name}"
            for name in (
                *("panic", "panic_on_oops", "panic_on_warn", "numa_balancing", "sysrq"),
                *("hung_task_panic", "hung_task_timeout_secs", "softlockup_panic"),
            )
        ),
        "mount -t sysfs sysfs sys -o ro,nosuid,nodev,noexec",
        "mount -t overlay overlay -o ro,lowerdir=run/host/class:sys/class sys/class",
        "mount -t tmpfs tmpfs dev -o mode=755,size=1M",
        *(
            line
            for name in ("null", "zero", "full", "random", "urandom", "tty")
            for line in (f"dev/{name} = ''", f"mount --bind /dev/{name} dev/{name}")
        ),
        "dev/pts/ 755",
        "dev/shm/ 755",
        "mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5",
        "dev/ptmx -> pts/ptmx",
        "dev/fd -> /proc/self/fd",
        "dev/stdin -> fd/0",
        "dev/stdout -> fd/1",
        "dev/stderr -> fd/2",
        "mount -t tmpfs tmpfs dev/shm -o mode=1777,size=64M",
        "hide proc/sysrq-trigger",
        "dev/.proc/ 700",
        "dev/.proc/whole/ 755",
        "mount -t proc proc dev/.proc/whole -o nosuid,nodev,noexec",
        "mount -t tmpfs tmpfs sys/fs/cgroup -o mode=755",
        "sys/fs/cgroup/memory/ 755",
        "mount -t cgroup -o memory cgroup sys/fs/cgroup/memory",
        "sys/fs/cgroup/systemd/ 755",
        "mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd",
        "hostname spark-1",
        "etc/hostname = 'spark-1\\n'",
        "etc/hosts = '127.0.0.1 localhost\\n10.77.0.1 spark-0\\n10.77.0.2 spark-1\\n10.77.0.3 spark-2\\n'",
        f"etc/ssh/ssh_host_ed25519_key <- {NODE}/ssh_host_ed25519_key 600",
        f"etc/ssh/ssh_host_ed25519_key.pub <- {NODE}/ssh_host_ed25519_key.pub 644",
        "root/.ssh/ 700",
        "root/.ssh/authorized_keys <- /state/local/desk/id_ed25519.pub 600",
        "run/host/ended = ''",
        f"mount --bind {NODE}/ended run/host/ended",
        ".old/ 755",
        "pivot_root . .old",
        "enter /",
        "/usr/bin/umount --lazy /.old",
        "/usr/bin/rmdir /.old",
    ]


def test_with_version_2_there_is_one_hierarchy() -> None:
    found = steps(V2)
    assert "mount -t cgroup2 cgroup2 sys/fs/cgroup" in found
    assert not any("cgroup/memory" in line for line in found)


def test_new_namespaces_and_then_systemd() -> None:
    assert boot.outer(NAMES, "spark-1", 4711, ["inner"]) == [
        *("nsenter", f"--net=/run/netns/sparkserve-desk-{TAG}-spark-1"),
        *("unshare", "--mount", "--uts", "--ipc", "--pid", "--time", "--boottime", "-4711"),
        *("--fork", "--propagation", "private", "inner"),
    ]
    assert boot.INIT[0] == "/usr/bin/setpriv"
    assert "-sys_time" in boot.INIT[1]
    assert boot.INIT[2:] == ["/lib/systemd/systemd", "--log-target=journal", "--show-status=no"]


def test_ssh_config_names_every_node() -> None:
    text = keys.config(NAMES, PLANS[0].fleet.nodes)
    assert text.startswith("Host spark-0\n  HostName 10.77.0.1\n  HostKeyAlias spark-0\n\nHost spark-1\n")
    for line in (
        "StrictHostKeyChecking yes",
        'IdentityFile "/state/local/desk/id_ed25519"',
        'UserKnownHostsFile "/state/local/desk/known_hosts"',
        f"ControlPath /run/sparkserve-desk-{TAG}/%n",
    ):
        assert f"  {line}\n" in text


def test_hierarchies_of_a_hybrid_machine() -> None:
    found = cgroups.parse(
        "30 20 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
        "31 30 0:27 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n"
        "32 30 0:28 / /sys/fs/cgroup/systemd rw shared:2 - cgroup cgroup rw,xattr,name=systemd\n"
        "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "35 30 0:31 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n"
        "36 30 0:31 / /second rw - cgroup cgroup rw,memory\n"
    )
    assert [(str(each.path), each.options) for each in found] == [
        ("/sys/fs/cgroup/unified", ""),
        ("/sys/fs/cgroup/systemd", "name=systemd"),
        ("/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct"),
        ("/sys/fs/cgroup/my memory", "memory"),
    ]


def test_a_version_2_cgroup_is_made_limited_and_frozen(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "fleet"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    groups = Cgroups((Hierarchy(tmp_path, ""),))
    groups.make("fleet", "spark-0", 100)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids +cpu +io"
    assert (tmp_path / "fleet/cgroup.subtree_control").read_text() == "+memory +pids +cpu +io"
    assert (tmp_path / "fleet/spark-0/memory.max").read_text() == str(100 << 20)
    (tmp_path / "fleet/spark-0/cgroup.events").write_text("populated 1\nfrozen 1\n")
    groups.freeze("fleet", "spark-0", frozen=True)
    assert (tmp_path / "fleet/spark-0/cgroup.freeze").read_text() == "1"
    (tmp_path / "fleet/spark-0/cgroup.procs").write_text("7\n8\n")
    assert groups.pids("fleet") == {7, 8}


def test_all_nodes_are_on_one_switch() -> None:
    machine.check_plans(PLANS)
    fabric = PLANS[2].fabric
    assert fabric is not None
    management = fabric.management.model_copy(update={"address": fabric.links[0].address})
    apart = PLANS[2].model_copy(update={"fabric": fabric.model_copy(update={"management": management})})
    with pytest.raises(SparkserveError, match=r"spark-2 with 10\.23\.0\.3"):
        machine.check_plans([*PLANS[:2], apart])


@pytest.mark.parametrize("name", ["root", "tools", "wires"])
def test_a_node_is_not_called_as_a_part_of_the_fleet_is(name: str) -> None:
    """Its folder would be the link to the nodes' root in the store, or its namespace that of the cables."""
    node = PLANS[1].node.model_copy(update={"name": name})
    with pytest.raises(
        SparkserveError, match=f"found {name}; where: hosts/local-triangle/fleet.nix. Rename it"
    ):
        machine.check_plans([PLANS[0], PLANS[1].model_copy(update={"node": node}), PLANS[2]])


def test_only_root_makes_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SparkserveError) as caught:
        machine.check()
    assert (caught.value.id, caught.value.do) == ("HOST.ROOT", "Run the same command with sudo.")


@pytest.mark.parametrize(
    ("mountinfo", "found"),
    [
        ("", "the controllers none"),
        ("31 30 0:27 / {path} rw - cgroup2 cgroup2 rw\n", "the controllers cpu, pids"),
        ("33 30 0:29 / {path} rw - cgroup cgroup rw,memory\n", "memory"),
    ],
)
def test_a_machine_without_memory_cgroups(
    mountinfo: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu pids\n")
    hierarchies = cgroups.parse(mountinfo.format(path=tmp_path))
    monkeypatch.setattr(cgroups, "parse", lambda _: hierarchies)
    with pytest.raises(SparkserveError) as caught:
        cgroups.detect()
    assert (caught.value.id, caught.value.found) == ("HOST.SYSTEM", found)


def test_the_record_gives_the_same_fleet_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "detect", lambda: V1)
    names = NAMES._replace(folder=tmp_path)
    assert record.load(names) is None
    fleet = record.Fleet(names, tuple(PLANS), Path("/base"), Tools(Path("/tools")), boot.DEFAULT_SIZES, V1)
    record.save(fleet)
    assert record.load(names) == fleet
    assert fleet.environment["PATH"].startswith("/tools/bin:")
    assert fleet.environment["NIX_SSHOPTS"] == f"-F /run/sparkserve-desk-{names.tag}/ssh_config"
    names.record.write_text("{")
    with pytest.raises(SparkserveError) as caught:
        record.load(names)
    assert caught.value.id == "ENGINE.STATE"
    assert "Invalid JSON" in caught.value.found and "http" not in caught.value.found
    assert "./sparkserve down --fleet desk" in caught.value.do
    names.record.unlink()
    os.mkfifo(names.record)
    with pytest.raises(SparkserveError) as caught:
        record.load(names)
    assert caught.value.found == "no regular file"


def test_the_pump_passes_bytes_and_ends_both_ways() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Answers only after the end, so the end itself must have come through.
        writer.write(await reader.read())
        writer.close()

    async def main() -> bytes:
        far = await asyncio.start_server(echo, "127.0.0.1", 0)
        near = await forward.listen("127.0.0.1", 0, "127.0.0.1", far.sockets[0].getsockname()[1])
        async with far, near:
            port = near.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bytes(1_000_000))
            writer.write_eof()
            found = await reader.read()
            writer.close()
            far.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                rest = await reader.read()
            except ConnectionError:
                rest = b""
            writer.close()
            return found + rest

    assert asyncio.run(asyncio.wait_for(main(), 20)) == bytes(1_000_000)
