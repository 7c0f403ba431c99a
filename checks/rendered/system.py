"""Readers of the system's own settings: each returns its complaints, and what is not as planned."""

import re
from pathlib import Path

from box import Box, lines


def sysctl(box: Box, paths: list[str]) -> list[str]:
    """systemd-sysctl writes into a /proc/sys of files, which has what this machine's kernel has."""
    fake, kernel = box.at("/sys-settings"), Path("/proc/sys")
    for name in box.host["sysctls"]:
        place = name.replace(".", "/")
        # An interface of the node is none of this machine; all have the same settings.
        known = re.sub("^(net/ipv[46]/(conf|neigh))/[^/]+/", r"\1/default/", place)
        # A machine may go without IPv6.
        without = place.startswith("net/ipv6/") and not (kernel / "net/ipv6").exists()
        if without or (kernel / known).exists():
            box.write(f"/sys-settings/{place}", "")
    fake.mkdir(exist_ok=True)
    done = box.run("/usr/lib/systemd/systemd-sysctl", *paths, options=("--bind", str(fake), "/proc/sys"))
    found = {name: (fake / name.replace(".", "/")) for name in box.host["sysctls"]}
    got = {name: file.read_text().strip() if file.exists() else "unknown" for name, file in found.items()}
    other = [f"{name} = {got[name]}" for name, value in box.host["sysctls"].items() if got[name] != value]
    return lines(done.stderr) + other


def modprobe(box: Box, paths: list[str]) -> list[str]:
    """modprobe does not load what is blocked, under its own name either."""
    complaints = lines(box.run("modprobe", "--showconfig").stderr)
    for path in paths:
        for module in re.findall(r"^blacklist (\S+)$", box.at(path).read_text(), re.MULTILINE):
            done = box.run("modprobe", "--dry-run", "--verbose", module)
            if done.stdout.split() != ["install", "/bin/false"]:
                complaints += [f"{module}: {done.stdout or done.stderr}"]
    return complaints


def udev(box: Box, paths: list[str]) -> list[str]:
    """udevadm reads the rules for a GPU whose driver was bound."""
    device = "/sys/devices/pci0/0000:01:00.0"
    box.write(f"{device}/uevent", "DRIVER=nvidia\nPCI_ID=10DE:2E12\n")
    box.at("/sys/bus/pci/drivers/nvidia").mkdir(parents=True)
    for link, target in (("subsystem", "../../../bus/pci"), ("driver", "../../../bus/pci/drivers/nvidia")):
        (box.at(device) / link).symlink_to(target)
    options = ("--setenv", "SYSTEMD_DEVICE_VERIFY_SYSFS", "0", "--ro-bind", str(box.at("/sys")), "/sys")
    done = box.run("udevadm", "test", "--action=bind", device, options=options)
    wanted = [re.findall(r'RUN\+="([^"]+)"', box.at(path).read_text()) for path in paths]
    missing = [run for each in wanted for run in each if f"run: '{run}'" not in done.stdout]
    ours = [
        line for line in lines(done.stderr, but="^Reading rules file| RUN '") if any(p in line for p in paths)
    ]
    return ours + missing


def limits(box: Box, paths: list[str]) -> list[str]:
    """pam_limits opens a session, for root and for another. What it says goes to a log socket of the box."""
    script = Path(__file__).with_name("session.py").read_text()
    box.write("/etc/pam.d/reader", "session required pam_limits.so debug\n")
    box.write("/etc/pam.d/other", "session required pam_permit.so\n")
    box.write("/etc/security/limits.conf", "")
    complaints = []
    for user in ("root", "nobody"):
        said = box.run("python3", "-I", "-c", script, user)
        # Where it may not raise a limit it says what it wanted.
        if not re.search(r"^memlock -1$|'memlock' to soft=-1, hard=-1", said.stdout, re.MULTILINE):
            complaints += [f"{user}: {said.stdout}{said.stderr}"]
        usual = "reading settings|processing - memlock|'memlock' to soft=-1|^memlock "
        complaints += lines(said.stdout, but=usual)
    return complaints


def grub(box: Box, paths: list[str]) -> list[str]:
    """grub-mkconfig makes a menu of two kernels, after an /etc/default/grub as DGX OS has it."""
    release = box.host["kernel"]["release"] or "7.0.0-1019-nvidia"
    for kernel in (release, "9.9.9-9-generic"):
        box.write(f"/boot/vmlinuz-{kernel}", "")
        box.write(f"/boot/initrd.img-{kernel}", "")
    box.write("/boot/grub/grubenv", "")
    given = 'GRUB_DISTRIBUTOR=Ubuntu\nGRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash kho=on"\n'
    box.write("/etc/default/grub", given)
    # The sandbox has no disk to look at.
    probe = 'case "$*" in *fs_uuid*) echo 0f0f ;; *=device*) echo /dev/nvme0n1p2 ;; *) echo ext2 ;; esac'
    box.write("/probe", f"#!/bin/sh\n{probe}\n", 0o755)
    for script in ("05_debian_theme", "20_linux_xen", "30_os-prober", "30_uefi-firmware"):
        (box.etc / "grub.d" / script).unlink()
    options = ["--bind", str(box.at("/boot")), "/boot"]
    for program in ("sbin/grub-probe", "bin/grub-mkrelpath"):
        options += ["--ro-bind", str(box.at("/probe")), f"/usr/{program}"]
    done = box.run("grub-mkconfig", "-o", "/boot/grub/grub.cfg", options=tuple(options))
    if done.returncode:
        return [*lines(done.stderr), f"exit code {done.returncode}"]
    menu = box.at("/boot/grub/grub.cfg").read_text()
    arguments = re.findall(r"^\s*linux\s\S+(.*)$", menu, re.MULTILINE)
    normal = [line.split() for line in arguments if " single" not in line]
    wanted = box.host["kernel_args"]
    splash = box.host["default_target"] == "graphical.target"
    complaints = [
        f"the kernel gets {' '.join(line)}"
        for line in normal
        if any(line.count(arg) != 1 for arg in wanted) or ("splash" in line) != splash or "kho=on" in line
    ]
    if not normal:
        complaints += ["no kernel in the menu"]
    entry = re.search(r'^   set default="(?!\$)(.*)"$', menu, re.MULTILINE)
    pinned = box.host["kernel"]["release"] is not None
    chosen = f"gnulinux-advanced-0f0f>gnulinux-{release}-advanced-0f0f" if pinned else "0"
    there = not pinned or all(f"'{id}'" in menu for id in chosen.split(">"))
    if entry is None or entry[1] != chosen or not there:
        complaints += [f"the default is {entry and entry[1]}"]
    return complaints + lines(done.stderr, but="^(Generating|Found|done)|dpkg: not found")
