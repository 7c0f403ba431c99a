"""One pool of memory for CPU and GPU: what hides it, holds it, or cuts it into pieces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import Unknown, Verdict, check, want
from sparkserve.doctor.node import GIB

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

MEMINFO = "/proc/meminfo"


def gib(kib: int) -> str:
    """KiB as text in GiB."""
    return f"{kib / GIB:.1f} GiB"


@check(
    "MEMORY.TOTAL",
    "The kernel has all memory of a Spark, 121.7 GiB: a driver option file left one node with 62.",
    "error",
    "issues, mia",
    fix="grep -r nvidia /etc/modprobe.d; move the file with the option away, sudo update-initramfs "
    "-u, reboot",
    on="spark",
)
def total(n: Node) -> Verdict:
    found = n.meminfo("MemTotal")
    return want(found >= 115 * GIB, expected="about 121.7 GiB", found=gib(found), where=MEMINFO)


@check(
    "MEMORY.WATERMARK",
    "vm.watermark_boost_factor is 0: a boost hides up to 0.87 GiB from MemAvailable, which the guard reads.",
    "error",
    "owen",
    fix="sudo sysctl vm.watermark_boost_factor=0, and the same line in /etc/sysctl.d/90-watermark-boost.conf",
    on="spark",
)
def watermark(n: Node) -> Verdict:
    found = n.value("/proc/sys/vm/watermark_boost_factor")
    return want(found == 0, expected="0", found=found, where="/proc/sys/vm/watermark_boost_factor")


@check(
    "MEMORY.MIN_FREE",
    "vm.min_free_kbytes is not raised: what it keeps is missing in the free memory that the engine checks.",
    "warning",
    "issues, owen",
    fix="remove vm.min_free_kbytes from /etc/sysctl.d and reboot; against fragmentation compact "
    "before a load",
    on="spark",
)
def min_free(n: Node) -> Verdict:
    found = n.value("/proc/sys/vm/min_free_kbytes")
    where = "/proc/sys/vm/min_free_kbytes"
    return want(found <= 262144, expected="at most 262144", found=found, where=where)


@check(
    "MEMORY.MIN_FREE_64K",
    "With 64 KiB pages vm.min_free_kbytes is 45166, what 4 KiB pages have: the kernel's own choice "
    "takes far more.",
    "warning",
    "owen",
    fix="sudo sysctl vm.min_free_kbytes=45166, and the same line in /etc/sysctl.d/90-min-free.conf",
    on="spark",
)
def min_free_64k(n: Node) -> Verdict:
    n.pages_64k()
    found = n.value("/proc/sys/vm/min_free_kbytes")
    return want(found <= 65536, expected="45166", found=found, where="/proc/sys/vm/min_free_kbytes")


@check(
    "MEMORY.THP_64K",
    "With 64 KiB pages transparent huge pages are off: one is then 512 MiB.",
    "warning",
    "owen",
    fix="echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled, and the same in a unit at boot",
    on="spark",
)
def thp_64k(n: Node) -> Verdict:
    n.pages_64k()
    where = "/sys/kernel/mm/transparent_hugepage/enabled"
    chosen = re.search(r"\[(\w+)\]", n.text(where))
    if not chosen:
        raise Unknown(f"{where} shows no choice")
    return want(chosen[1] == "never", expected="never", found=chosen[1], where=where)


@check(
    "MEMORY.PANIC_ON_OOM",
    "vm.panic_on_oom is 0: an OOM kill of one process must not take the node, and its logs, down.",
    "warning",
    "owen",
    fix="sudo sysctl vm.panic_on_oom=0, and remove it from /etc/sysctl.d",
)
def panic_on_oom(n: Node) -> Verdict:
    found = n.value("/proc/sys/vm/panic_on_oom")
    return want(found == 0, expected="0", found=found, where="/proc/sys/vm/panic_on_oom")


@check(
    "MEMORY.SWAP",
    "Swap is off or at most 16 GiB: a node that swaps answers nobody, and MemAvailable says there is room.",
    "warning",
    "issues, owen",
    fix='sudo swapoff -a, and noauto in its line of /etc/fstab; memory.swap = "off" in fleet.nix keeps it so',
    on="spark",
)
def swap(n: Node) -> Verdict:
    found = n.meminfo("SwapTotal")
    return want(found <= 16 * GIB, expected="at most 16 GiB", found=gib(found), where=MEMINFO)


@check(
    "MEMORY.SWAP_PAGES",
    "The swap file in use was made for the running page size: its header is not the same for 4 and 64 KiB.",
    "warning",
    "owen",
    fix="sudo swapoff /swap.img; use a second file /swap-64k.img, made with mkswap under the 64 KiB kernel",
    on="spark",
)
def swap_pages(n: Node) -> Verdict:
    size = n.page_size()
    lines = n.text("/proc/swaps").splitlines()
    if not lines or not lines[0].startswith("Filename"):
        raise Unknown("/proc/swaps has another form")
    files = [line.split()[0] for line in lines[1:] if line.split()]
    wrong = [name for name in files if ("64k" in name) != (size == 65536) and name.startswith("/swap")]
    found = " ".join(wrong or files) or "no swap"
    return want(not wrong, expected=f"a file for {size}-byte pages", found=found, where="/proc/swaps")


@check(
    "MEMORY.FRAGMENTED",
    "There are free blocks of 4 MiB: without one the driver's allocations fail with gigabytes free.",
    "warning",
    "issues, mia",
    fix="./sparkserve down, then sudo sh -c 'sync; echo 1 >/proc/sys/vm/drop_caches; "
    "echo 1 >/proc/sys/vm/compact_memory'",
    on="spark",
)
def fragmented(n: Node) -> Verdict:
    rows = re.findall(r"^Node \d+, zone\s+\w+((?:\s+\d+)+)\s*$", n.text("/proc/buddyinfo"), re.M)
    if not rows:
        raise Unknown("/proc/buddyinfo has no zones")
    # The order of 4 MiB: 10 of 4 KiB pages, 6 of 64 KiB pages.
    order = 10 if n.page_size() == 4096 else 6
    blocks = sum(sum(int(count) for count in row.split()[order:]) for row in rows)
    return want(blocks >= 16, expected="at least 16", found=f"{blocks} blocks", where="/proc/buddyinfo")


@check(
    "MEMORY.CACHE",
    "Before a start the page cache holds less than 20 GiB: CUDA counts it as used, and loads failed "
    "at 73 to 97 %.",
    "warning",
    "issues, mia",
    fix="sudo sh -c 'sync; echo 1 >/proc/sys/vm/drop_caches'",
    on="spark",
)
def cache(n: Node) -> Verdict:
    n.idle()
    found = n.meminfo("Cached") - n.meminfo("Shmem")
    return want(found < 20 * GIB, expected="less than 20 GiB", found=gib(found), where=MEMINFO)


@check(
    "MEMORY.HELD",
    "Without an engine at least 100 GiB are available: a dead one can leave 33 GiB behind.",
    "error",
    "issues",
    fix="wait two minutes and ask again; then look for what is left (sudo ps -eo pid,rss,args --sort "
    "-rss | head), "
    "else sudo systemctl reboot",
    on="spark",
)
def held(n: Node) -> Verdict:
    n.idle()
    found = n.meminfo("MemAvailable")
    return want(found >= 100 * GIB, expected="at least 100 GiB", found=gib(found), where=MEMINFO)


@check(
    "MEMORY.FLOOR",
    "While the engine serves, MemAvailable is above the guard's floor, 3 GiB without a plan.",
    "error",
    "owen, issues",
    fix="send this node fewer and shorter requests now; then a smaller engine.kvTokens in fleet.nix",
    on="spark",
)
def floor(n: Node) -> Verdict:
    n.engine()
    found = n.meminfo("MemAvailable")
    return want(found > n.floor(), expected=f"more than {gib(n.floor())}", found=gib(found), where=MEMINFO)


@check(
    "MEMORY.SHMEM",
    "Shared memory takes at most 16 GiB: it is locked, it is in no budget, and 64 GiB of it switched "
    "a node off.",
    "warning",
    "issues",
    fix="df -h /dev/shm; remove what no process uses; NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS have NCCL's part"
    " (./sparkserve doctor explain ENGINE.NCCL_BUFFERS)",
    on="spark",
)
def shmem(n: Node) -> Verdict:
    found = n.meminfo("Shmem")
    return want(found <= 16 * GIB, expected="at most 16 GiB", found=gib(found), where=MEMINFO)
