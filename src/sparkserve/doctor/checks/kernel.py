"""The kernel that runs, and the one that would run next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Unknown, Verdict, check, quoted, want
from sparkserve.doctor.node import number

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

GRUB = "/etc/default/grub.d/95-local.cfg"  # zz-sparkserve.cfg is the closure's
STOPPED = "with the group stopped (./sparkserve down)"


def _argument(words: str) -> str:
    return (
        f"printf '%s\\n' 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {words}\"' | "
        f"sudo tee -a {GRUB} && sudo update-grub && sudo systemctl reboot, {STOPPED}"
    )


@check(
    "KERNEL.KHO",
    "A kernel from 7.0 on runs with kho=off: kexec handover leaves memory that RDMA cannot pin (ENOMEM).",
    "error",
    "owen, issues",
    fix=_argument("kho=off"),
    on="spark",
)
def kho(n: Node) -> Verdict:
    if n.version() < (7, 0):
        raise NotApplicable(f"kernel {n.release()} has no kexec handover on by default")
    words = n.cmdline()
    found = [word for word in words if word.startswith("kho=")]
    return want(
        found[-1:] == ["kho=off"], expected="kho=off", found=found or "no kho=", where="/proc/cmdline"
    )


@check(
    "KERNEL.CMA",
    "CmaFree is not above CmaTotal, which shows memory that kexec handover took and nothing can pin.",
    "error",
    "issues",
    fix=_argument("kho=off"),
    on="spark",
)
def cma(n: Node) -> Verdict:
    total, free = n.meminfo("CmaTotal"), n.meminfo("CmaFree")
    found = f"CmaFree {free} kB of CmaTotal {total} kB"
    return want(free <= total, expected="CmaFree at most CmaTotal", found=found, where="/proc/meminfo")


@check(
    "KERNEL.RELEASE",
    "The running kernel is the one that the plan names.",
    "error",
    "owen",
    fix="sudo update-grub && sudo systemctl reboot; install linux-image-RELEASE first if it is not there",
)
def release(n: Node) -> Verdict:
    planned = n.plan("host", "kernel", "release")
    fix = (
        f"sudo apt-get install {quoted(f'linux-image-{planned}')} && sudo update-grub && "
        f"sudo systemctl reboot, {STOPPED}"
    )
    where = "/proc/sys/kernel/osrelease"
    return want(n.release() == planned, expected=planned, found=n.release(), where=where, fix=fix)


@check(
    "KERNEL.PAGE_SIZE",
    "Pages have the size that the plan counts with.",
    "error",
    "owen",
    fix="boot the kernel of the plan, or set kernel.pageSizeKiB in fleet.nix to what runs",
)
def page_size(n: Node) -> Verdict:
    planned = n.plan("host", "kernel", "page_size")
    found = n.page_size()
    return want(
        found == planned, expected=f"{planned} bytes", found=f"{found} bytes", where="getconf PAGESIZE"
    )


@check(
    "KERNEL.DRIVER_64K",
    "A kernel with 64 KiB pages has driver 580: later ones fault below 4 GiB borders.",
    "error",
    "issues, owen",
    fix="sudo apt install linux-modules-nvidia-580-open-$(uname -r), or boot a kernel with 4 KiB pages",
    on="spark",
)
def driver_64k(n: Node) -> Verdict:
    n.pages_64k()
    found = n.text("/sys/module/nvidia/version").strip()
    return want(found.startswith("580."), expected="580.x", found=found, where="/sys/module/nvidia/version")


@check(
    "KERNEL.SAVER",
    "A kernel with 64 KiB pages packs the GPU's page tables: unpacked they take 3 GiB.",
    "error",
    "owen",
    fix="install dgx-spark-memory-saver, rebuild the initramfs and reboot, or boot a kernel with 4 KiB pages",
    on="spark",
)
def saver(n: Node) -> Verdict:
    n.pages_64k()
    path = "/sys/module/nvidia_uvm/parameters/uvm_pack_sysmem_leaf_tables"
    found = n.text(path).strip() if n.exists(path) else "the loaded nvidia_uvm does not know it"
    return want(found == "Y", expected="Y", found=found, where=path)


@check(
    "KERNEL.NEXT",
    "The kernel that boots next is the one that runs: an update shows only weeks later, at a power cut.",
    "warning",
    "issues",
    fix=f"set kernel.release in fleet.nix, {RESTARTED}; or reboot now to meet the new kernel while you look",
    on="spark",
)
def next_kernel(n: Node) -> Verdict:
    found = n.link("/boot/vmlinuz").rpartition("/")[2].removeprefix("vmlinuz-")
    return want(found == n.release(), expected=n.release(), found=found, where="/boot/vmlinuz")


@check(
    "KERNEL.HELD",
    "Nothing updates the kernel by itself: its packages are held, or unattended upgrades are off.",
    "warning",
    "issues",
    fix="sudo apt-mark hold $(dpkg-query -W -f '${Package} ' 'linux-*nvidia*')",
    on="spark",
)
def held(n: Node) -> Verdict:
    where = "/etc/apt/apt.conf.d/20auto-upgrades"
    if n.exists(where):
        text = n.text(where)
    else:  # any other file of apt may have the setting
        where = "apt-config dump"
        text = n.run("apt-config", "dump", "APT::Periodic::Unattended-Upgrade")
    if text.strip() and "APT::" not in text:
        raise Unknown(f"{where} has no settings of apt")
    switch = re.search(r'Unattended-Upgrade\s+"(\d+)"', text)
    if switch is None or switch[1] == "0":
        return want(True, expected="", found="unattended upgrades are off", where=where)
    held = [name for name in n.run("apt-mark", "showhold").split() if name.startswith("linux-")]
    found = f"upgrades every {switch[1]} days, held: {' '.join(held) or 'no kernel package'}"
    return want(bool(held), expected="linux-image held", found=found, where=f"{where}, apt-mark showhold")


@check(
    "KERNEL.ARGUMENTS",
    "Every kernel argument of the plan is on the command line that runs.",
    "error",
    "ours, owen",
    fix=f"sudo update-grub && sudo systemctl reboot, {STOPPED}",
)
def arguments(n: Node) -> Verdict:
    planned = [str(word) for word in n.plan("host", "kernel_args")]
    words = n.cmdline()
    own = n.spark()[0] and n.version() >= (7, 0)  # then KERNEL.KHO has better words
    missing = [word for word in planned if word not in words and not (own and word.startswith("kho="))]
    found = f"without {' '.join(missing)}" if missing else "all of them"
    return want(not missing, expected=" ".join(planned), found=found, where="/proc/cmdline")


# On a Spark these have checks of their own, with better words: KERNEL.PANIC, which asks the plan too, and
# MEMORY.WATERMARK and MEMORY.PANIC_ON_OOM, which say all about what is not 0.
PANIC = ("kernel.panic", "kernel.panic_on_oops")
NOT_ZERO = ("vm.watermark_boost_factor", "vm.panic_on_oom")


@check(
    "KERNEL.SYSCTLS",
    "Every sysctl of the plan has its value in /proc/sys.",
    "error",
    "ours, owen",
    fix="sudo sysctl --system; if a value comes back, another file in /etc/sysctl.d sorts after ours",
)
def sysctls(n: Node) -> Verdict:
    differ = []
    planned = n.plan("host", "sysctls")
    spark = n.spark()[0]
    for name, value in planned.items():
        if spark and name in PANIC:
            continue
        path = "/proc/sys/" + name.replace("/", "\0").replace(".", "/").replace("\0", ".")
        found = n.text(path).split() if n.exists(path) else ["nothing"]
        if spark and name in NOT_ZERO and found != ["nothing"] and n.value(path) != 0:
            continue
        if found != str(value).split():
            differ.append(f"{name} = {' '.join(found)} and not {value}")
    found_all = "; ".join(differ) or f"{len(planned)} as planned"
    return want(not differ, expected="the plan's values", found=found_all, where="/proc/sys")


def _panic(seconds: int, oops: int) -> str:
    return (
        f"sudo sysctl kernel.panic={seconds} kernel.panic_on_oops={oops}, and the same two lines in "
        "/etc/sysctl.d/90-panic.conf"
    )


@check(
    "KERNEL.PANIC",
    "A kernel that oopses reboots, after 30 s or what the plan says: a node that hangs stays away for ever.",
    "warning",
    "owen, issues",
    fix=_panic(30, 1),
    on="spark",
)
def panic(n: Node) -> Verdict:
    seconds = n.value("/proc/sys/kernel/panic")
    oops = n.value("/proc/sys/kernel/panic_on_oops")
    found = f"kernel.panic {seconds}, kernel.panic_on_oops {oops}"
    where = "/proc/sys/kernel"
    try:
        planned = n.plan("host", "sysctls")
        after, on = (number(str(planned[name]), f"the plan's {name}") for name in PANIC)
    except (NotApplicable, KeyError):  # a plan that leaves it to the host
        expected = "kernel.panic 1 to 60, kernel.panic_on_oops 1"
        return want(1 <= seconds <= 60 and oops == 1, expected=expected, found=found, where=where)
    expected = f"kernel.panic {after}, kernel.panic_on_oops {on}"
    return want(
        (seconds, oops) == (after, on), expected=expected, found=found, where=where, fix=_panic(after, on)
    )


@check(
    "KERNEL.WIFI",
    "The Wi-Fi driver mt7925e is not loaded: its reset path oopses and takes the network stack with it.",
    "warning",
    "issues",
    fix="echo 'blacklist mt7925e' | sudo tee /etc/modprobe.d/zz-wifi.conf && sudo modprobe -r mt7925e",
    on="spark",
)
def wifi(n: Node) -> Verdict:
    loaded = "mt7925e" in n.names("/sys/module")
    return want(
        not loaded, expected="not loaded", found="loaded" if loaded else "not loaded", where="/sys/module"
    )


@check(
    "KERNEL.GOVERNOR",
    "Every core's frequency governor is performance.",
    "warning",
    "owen",
    fix="sudo cpupower frequency-set -g performance (package linux-tools of the running kernel)",
    on="spark",
)
def governor(n: Node) -> Verdict:
    cores = [name for name in n.names("/sys/devices/system/cpu") if re.fullmatch(r"cpu\d+", name)]
    if not cores:
        raise Unknown("/sys/devices/system/cpu has no cores")
    seen = {n.text(f"/sys/devices/system/cpu/{core}/cpufreq/scaling_governor").strip() for core in cores}
    return want(
        seen == {"performance"},
        expected="performance",
        found=" ".join(sorted(seen)),
        where="scaling_governor",
    )


def _log(n: Node, pattern: str) -> str | None:
    log = n.run("dmesg")
    if not re.search(r"^\[ *\d+\.\d+\]|^<\d+>", log, re.M):
        raise Unknown("dmesg printed no kernel log")
    lines = [line for line in log.splitlines() if re.search(pattern, line)]
    return f"{len(lines)} lines, the last: {lines[-1].strip()[:160]}" if lines else None


@check(
    "KERNEL.AER",
    "The kernel log has no fatal PCIe error: the network card is then gone, and a restart does not "
    "bring it back.",
    "error",
    "issues",
    fix="stop the group, remove AC power of this node for a minute; a second time is a case for the maker",
    on="spark",
)
def aer(n: Node) -> Verdict:
    found = _log(n, r"\(Fatal\)|AER: device recovery failed")
    return want(found is None, expected="no fatal AER", found=found or "none", where="dmesg")


@check(
    "KERNEL.NO_MEMORY",
    "The driver has not run out of memory since boot: the host is near a freeze without any OOM kill.",
    "error",
    "issues, mia",
    fix="./sparkserve down, then sudo systemctl reboot; then less KV (engine.kvTokens) in fleet.nix",
    on="spark",
)
def no_memory(n: Node) -> Verdict:
    found = _log(n, "NV_ERR_NO_MEMORY")
    return want(found is None, expected="no NV_ERR_NO_MEMORY", found=found or "none", where="dmesg")
