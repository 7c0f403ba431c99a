"""How a node's root is put together and entered: the steps for inner.py, as data. Pure.

What is not mounted is not there: a node has no device of the machine, no file of the machine but its base
root, and no kernel setting that is not its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.local import hca, network

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.local.cgroups import Cgroups
    from sparkserve.local.names import Names
    from sparkserve.plan import Plan

Step = dict[str, Any]

# Where GRUB has the arguments of the next start, and what they are before the first update-grub on DGX OS.
MENU = "boot/grub/grub.cfg"
BEFORE_GRUB = "BOOT_IMAGE=/boot/vmlinuz ro quiet splash"
# In /proc/sys: all of vm, and what a policy sets of kernel.
_OWN = (
    "vm",
    *(f"kernel/{name}" for name in ("panic", "panic_on_oops", "panic_on_warn", "numa_balancing", "sysrq")),
    *(f"kernel/{name}" for name in ("hung_task_panic", "hung_task_timeout_secs", "softlockup_panic")),
)

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# What would reach past the node: the clock, the kernel's modules and log, raw devices.
_DROPPED = (
    *("sys_time", "sys_module", "sys_rawio", "syslog", "mac_admin", "mac_override", "audit_control"),
    *("sys_pacct", "wake_alarm", "block_suspend", "bpf", "perfmon"),
)
INIT = [
    *("/usr/bin/setpriv", f"--bounding-set={','.join(f'-{name}' for name in _DROPPED)}"),
    *("/lib/systemd/systemd", "--log-target=journal", "--show-status=no"),
]
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "container": "sparkserve",  # systemd then leaves alone what a container has not, such as udev
    "TERM": "linux",
}


class Sizes(NamedTuple):
    """How large a node is. The disk takes space as it fills. `shm_mib` counts as memory."""

    disk_gib: int = 8
    memory_mib: int = 4096
    shm_mib: int = 1024


DEFAULT_SIZES = Sizes()


def outer(names: Names, node: str, uptime_s: int, inner: Sequence[str]) -> list[str]:
    """The argv on the machine that runs `inner` as PID 1 of new namespaces, with an uptime of its own."""
    return [
        *("nsenter", f"--net=/run/netns/{names.netns(node)}"),
        *("unshare", "--mount", "--uts", "--ipc", "--pid", "--time", "--boottime", str(-uptime_s)),
        *("--fork", "--propagation", "private"),
        *inner,
    ]


def steps(
    names: Names, plans: Sequence[Plan], plan: Plan, base: Path, sizes: Sizes, cgroups: Cgroups, boot_id: str
) -> list[Step]:
    """All steps of a start, from the disk to `pivot_root`. `base` is the read-only root."""
    files = names.node(plan.node.name)
    return [
        # From here on by relative paths: a comma in the folder's own would end an option of the overlay.
        _enter(str(files.folder)),
        *_root(files.image.name, files.disk.name, files.root.name, base),
        *_proc(boot_id),
        *_sys(names, plan),
        *_devices(sizes.shm_mib),
        *_cgroups(cgroups),
        *_identity(names, plans, plan),
        _file("run/host/ended", ""),
        _run("mount", "--bind", str(files.ended), "run/host/ended"),
        _folder(".old"),
        _run("pivot_root", ".", ".old"),
        _enter("/"),
        _run("/usr/bin/umount", "--lazy", "/.old"),
        _run("/usr/bin/rmdir", "/.old"),
    ]


def _root(image: str, disk: str, root: str, base: Path) -> list[Step]:
    layers = f"lowerdir={base},upperdir={disk}/upper,workdir={disk}/work"
    return [
        _run("mount", "-o", "loop", image, disk),
        *(_folder(f"{disk}/{name}") for name in ("upper", "work", "nix/store", "nix/var/nix")),
        _run("mount", "-t", "overlay", "overlay", "-o", layers, root),
        _enter(root),
        # On the disk itself: an overlay would copy a file up to link it.
        _run("mount", "--bind", f"../{disk}/nix", "nix"),
        _run("mount", "-t", "tmpfs", "tmpfs", "run", "-o", "mode=755,size=256M"),
        _folder("run/lock"),
        _folder("run/host"),
    ]


def _proc(boot_id: str) -> list[Step]:
    return [
        _run("mount", "-t", "proc", "proc", "proc", "-o", "nosuid,nodev,noexec"),
        # Most of /proc/sys belongs to the machine; net is the node's own.
        _run("mount", "--bind", "proc/sys", "proc/sys"),
        _run("mount", "-o", "remount,bind,ro,nosuid,nodev,noexec", "proc/sys"),
        _run("mount", "--bind", "proc/sys/net", "proc/sys/net"),
        _run("mount", "-o", "remount,bind,rw", "proc/sys/net"),
        _file("run/host/boot_id", f"{boot_id}\n"),
        _run("mount", "--bind", "run/host/boot_id", "proc/sys/kernel/random/boot_id"),
        # What the node's own update-grub wrote: another argument counts after its next start.
        {"do": "cmdline", "path": "run/host/cmdline", "menu": MENU, "without": BEFORE_GRUB},
        _run("mount", "--bind", "run/host/cmdline", "proc/cmdline"),
        # Settings of the machine's kernel that no namespace has: the node gets a copy that it can write.
        *({"do": "own", "path": f"proc/sys/{path}", "copy": f"run/host/sys/{path}"} for path in _OWN),
    ]


def _sys(names: Names, plan: Plan) -> list[Step]:
    devices = hca.files(plan, lambda interface: network.hardware_address(names, plan, interface))
    return [
        # A new sysfs shows the interfaces of this network namespace only.
        _run("mount", "-t", "sysfs", "sysfs", "sys", "-o", "ro,nosuid,nodev,noexec"),
        *(_file(f"run/host/class/{path}", text) for path, text in devices.items()),
        # Only class: programs check that /sys itself is a sysfs.
        _run("mount", "-t", "overlay", "overlay", "-o", "ro,lowerdir=run/host/class:sys/class", "sys/class"),
    ]


def _devices(shm_mib: int) -> list[Step]:
    steps = [_run("mount", "-t", "tmpfs", "tmpfs", "dev", "-o", "mode=755,size=1M")]
    for name in _DEVICES:
        steps += [_file(f"dev/{name}", ""), _run("mount", "--bind", f"/dev/{name}", f"dev/{name}")]
    return [
        *steps,
        _folder("dev/pts"),
        _folder("dev/shm"),
        _run(
            *("mount", "-t", "devpts", "devpts", "dev/pts"),
            *("-o", "newinstance,ptmxmode=0666,mode=620,gid=5"),
        ),
        _link("dev/ptmx", "pts/ptmx"),
        _link("dev/fd", "/proc/self/fd"),
        *(_link(f"dev/{name}", f"fd/{number}") for number, name in enumerate(("stdin", "stdout", "stderr"))),
        _run("mount", "-t", "tmpfs", "tmpfs", "dev/shm", "-o", f"mode=1777,size={shm_mib}M"),
        # Anyone who may write there can reboot the machine.
        {"do": "hide", "path": "proc/sysrq-trigger"},
        # The engine's user namespace may mount a /proc of its own only where a whole one can be seen; what
        # covers parts of /proc above counts. For root only, where systemd's hardening leaves it alone.
        _folder("dev/.proc", 0o700),
        _folder("dev/.proc/whole"),
        _run("mount", "-t", "proc", "proc", "dev/.proc/whole", "-o", "nosuid,nodev,noexec"),
    ]


def _cgroups(cgroups: Cgroups) -> list[Step]:
    if cgroups.unified:
        return [_run("mount", "-t", "cgroup2", "cgroup2", "sys/fs/cgroup")]
    # As the machine has them: limits work only in the version that a controller is bound to.
    steps = [_run("mount", "-t", "tmpfs", "tmpfs", "sys/fs/cgroup", "-o", "mode=755")]
    for each in cgroups.hierarchies:
        folder = f"sys/fs/cgroup/{each.path.name}"
        steps.append(_folder(folder))
        if each.options:
            options = each.options if "name=" not in each.options else f"none,{each.options}"
            steps.append(_run("mount", "-t", "cgroup", "-o", options, "cgroup", folder))
        else:
            steps.append(_run("mount", "-t", "cgroup2", "cgroup2", folder))
    return steps


def _identity(names: Names, plans: Sequence[Plan], plan: Plan) -> list[Step]:
    node, key = plan.node.name, names.node(plan.node.name).host_key
    hosts = ["127.0.0.1 localhost", *(f"{each.address} {each.name}" for each in plans[0].fleet.nodes)]
    machine_id = hashlib.sha256(f"{names.group}/{node}".encode()).hexdigest()[:32]
    return [
        {"do": "hostname", "name": node},
        _file("etc/hostname", f"{node}\n"),
        _file("etc/hosts", "".join(f"{line}\n" for line in hosts)),
        _file("etc/machine-id", f"{machine_id}\n"),
        _copy("etc/ssh/ssh_host_ed25519_key", key, 0o600),
        _copy("etc/ssh/ssh_host_ed25519_key.pub", key.with_name(f"{key.name}.pub"), 0o644),
        _folder("root/.ssh", 0o700),
        _copy("root/.ssh/authorized_keys", names.folder / "id_ed25519.pub", 0o600),
    ]


def _run(*argv: str) -> Step:
    return {"do": "run", "argv": list(argv)}


def _enter(path: str) -> Step:
    return {"do": "enter", "path": path}


def _folder(path: str, mode: int = 0o755) -> Step:
    return {"do": "folder", "path": path, "mode": mode}


def _file(path: str, text: str) -> Step:
    return {"do": "file", "path": path, "text": text}


def _link(path: str, target: str) -> Step:
    return {"do": "link", "path": path, "target": target}


def _copy(path: str, source: Path, mode: int) -> Step:
    return {"do": "copy", "path": path, "source": str(source), "mode": mode}
