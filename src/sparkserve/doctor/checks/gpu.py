"""The GPU: is it there, does it run at its clock, and who else holds it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import NotApplicable, Unknown, Verdict, check, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

FIELDS = (
    "name",
    "driver_version",
    "clocks.sm",
    "power.draw",
    "temperature.gpu",
    "clocks_event_reasons.hw_thermal_slowdown",
    "clocks_event_reasons.sw_thermal_slowdown",
)
QUERY = f"--query-gpu={','.join(FIELDS)}"
APPS = "--query-compute-apps=pid,process_name,used_memory"
DRM_OPTION = (
    "sudo apt purge nvidia-drm-options-modeset0; sudo update-initramfs -u; reboot with the group stopped"
)


def _gpu(n: Node) -> dict[str, str]:
    """The GPU's fields; one that the unified memory of a Spark does not have is [N/A]."""
    lines = n.run("nvidia-smi", QUERY, "--format=csv,noheader,nounits").strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if lines else []
    if len(values) != len(FIELDS):
        raise Unknown(f"nvidia-smi printed {' '.join(lines)[:80]!r}")
    return dict(zip(FIELDS, values, strict=True))


def _apps(n: Node) -> list[tuple[int, str]]:
    out = n.run("nvidia-smi", APPS, "--format=csv,noheader,nounits")
    rows = [re.match(r"\s*(\d+),\s*([^,]+)", line) for line in out.splitlines() if line.strip()]
    if None in rows:
        raise Unknown(f"nvidia-smi printed {out.strip()[:80]!r}")
    return [(int(row[1]), row[2].strip()) for row in rows if row]


@check(
    "GPU.PRESENT",
    "nvidia-smi shows a GB10.",
    "error",
    "mia",
    fix="sudo dmesg | grep -i nvidia; sudo apt install --reinstall the driver's packages, then reboot",
    on="spark",
)
def present(n: Node) -> Verdict:
    code, out = n.answer("nvidia-smi", QUERY, "--format=csv,noheader,nounits")
    found = out.strip().splitlines()[0][:80] if out.strip() else f"nothing (exit {code})"
    return want(code == 0 and "GB10" in found, expected="NVIDIA GB10", found=found, where="nvidia-smi")


@check(
    "GPU.CLOCK",
    "With an engine on it the GPU's clock is 1000 MHz or more: a power latch holds it at 500 to 720, "
    "45 % slower.",
    "error",
    "owen, mia",
    fix="./sparkserve down; pull the AC plug of this node for a minute: a reboot and nvidia-smi -lgc "
    "do nothing",
    on="spark",
)
def clock(n: Node) -> Verdict:
    n.engine()
    found = _gpu(n)["clocks.sm"]
    if not found.isdigit():
        raise Unknown(f"nvidia-smi gives no clock: {found[:40]}")
    return want(int(found) >= 1000, expected="at least 1000 MHz", found=f"{found} MHz", where="nvidia-smi")


@check(
    "GPU.THERMAL",
    "No thermal slowdown is active.",
    "error",
    "owen",
    fix="free the air inlets, raise the fans' floor; no measurement counts until it is gone",
    on="spark",
)
def thermal(n: Node) -> Verdict:
    values = _gpu(n)
    states = {name: values[name] for name in FIELDS[5:]}
    if not set(states.values()) <= {"Active", "Not Active"}:
        raise Unknown(f"nvidia-smi gives no slowdown state: {' '.join(states.values())[:60]}")
    active = [name.rpartition(".")[2] for name, state in states.items() if state == "Active"]
    return want(not active, expected="none", found=" ".join(active) or "none", where="nvidia-smi")


@check(
    "GPU.HEAT",
    "The hottest sensor of the board is below 98 C.",
    "error",
    "owen",
    fix="./sparkserve down until it has cooled; free the air inlets, look at the fans",
    on="spark",
)
def heat(n: Node) -> Verdict:
    root = "/sys/class/thermal"
    zones = [name for name in n.names(root) if name.startswith("thermal_zone")]
    if not zones:
        raise Unknown(f"{root} has no zones")
    found = max(n.value(f"{root}/{zone}/temp") for zone in zones) / 1000
    return want(found < 98, expected="below 98 C", found=f"{found:.0f} C", where=f"{root}/*/temp")


@check(
    "GPU.LIBRARY",
    "The driver's library is of the version of the loaded module: an update without a reboot breaks "
    "every start.",
    "error",
    "issues",
    fix="sudo systemctl reboot, with the group stopped (./sparkserve down)",
    on="spark",
)
def library(n: Node) -> Verdict:
    loaded = n.text("/sys/module/nvidia/version").strip()
    path = "/usr/lib/aarch64-linux-gnu/libcuda.so.1"
    found = n.link(path).rpartition("libcuda.so.")[2]
    return want(found == loaded, expected=loaded, found=found, where=path)


@check(
    "GPU.DRIVER",
    "The driver begins with the version that the plan names.",
    "error",
    "owen",
    fix="sudo apt install the driver of that version, or set kernel.driver in fleet.nix to what runs",
    on="spark",
)
def driver(n: Node) -> Verdict:
    planned = str(n.plan("host", "kernel", "driver"))
    found = n.text("/sys/module/nvidia/version").strip()
    if not re.fullmatch(r"\d+(\.\d+)+", found):
        raise Unknown(f"/sys/module/nvidia/version is no version: {found[:40]!r}")
    good = f"{found}.".startswith(f"{planned}.")
    return want(good, expected=planned, found=found, where="/sys/module/nvidia/version")


@check(
    "GPU.BUSY",
    "Nothing but our engine computes on the GPU: its memory is missing, and a start fails or freezes "
    "the host.",
    "error",
    "mia, issues",
    fix="look at the processes with ps, and end them the way they were started",
    on="spark",
)
def busy(n: Node) -> Verdict:
    foreign = [f"{name} ({pid})" for pid, name in _apps(n) if not n.ours(pid)]
    pids = ",".join(each.rpartition("(")[2].rstrip(")") for each in foreign)
    fix = f"ps -o pid,user,lstart,args -p {pids}; end them the way they were started"
    found = ", ".join(foreign) or "ours only"
    return want(not foreign, expected="ours only", found=found, where="nvidia-smi", fix=fix)


@check(
    "GPU.POLLING",
    "Nobody polls nvidia-smi faster than every 10 s: every 2 s on all nodes costs 0.6 ms of each step.",
    "warning",
    "issues, mia",
    fix="end that process, or give it --loop=10",
    on="spark",
)
def polling(n: Node) -> Verdict:
    fast = []
    for pid, name in n.processes():
        if name == "nvidia-smi":
            line = " ".join(n.command(pid))
            period = re.search(r"(?:-l|--loop)[= ]?(\d+)\b", line)
            if " dmon" in line or "-lms" in line or (period and int(period[1]) < 10):
                fast.append(f"{pid}: {line[:80]}")
    found = "; ".join(fast) or "nobody"
    return want(not fast, expected="every 10 s or slower", found=found, where="/proc/*/cmdline")


@check(
    "GPU.MODESET",
    "nvidia_drm runs with modeset: without it the card cannot give its display memory back, nor show "
    "a console.",
    "info",
    "owen",
    fix=DRM_OPTION,
    on="spark",
)
def modeset(n: Node) -> Verdict:
    path = "/sys/module/nvidia_drm/parameters/modeset"
    found = n.text(path).strip()
    return want(found == "Y", expected="Y", found=found, where=path)


@check(
    "GPU.FBDEV",
    "nvidia_drm runs with fbdev: else the text console stays on the firmware's framebuffer.",
    "info",
    "owen",
    fix="remove fbdev=0 from /etc/modprobe.d, sudo update-initramfs -u, reboot with the group stopped",
    on="spark",
)
def fbdev(n: Node) -> Verdict:
    path = "/sys/module/nvidia_drm/parameters/fbdev"
    found = n.text(path).strip()
    return want(found == "Y", expected="Y", found=found, where=path)


@check(
    "GPU.CARD",
    "A DRM card belongs to the GPU: on a node that booted with a screen the firmware's may be the first.",
    "info",
    "owen",
    fix="ls -l /dev/dri/by-path; sudo modprobe nvidia-drm modeset=1",
    on="spark",
)
def card(n: Node) -> Verdict:
    cards = [name for name in n.names("/sys/class/drm") if re.fullmatch(r"card\d+", name)]
    drivers = {name: n.link(f"/sys/class/drm/{name}/device/driver").rpartition("/")[2] for name in cards}
    found = ", ".join(f"{name} {driver}" for name, driver in drivers.items()) or "no card"
    return want("nvidia" in drivers.values(), expected="one of nvidia", found=found, where="/sys/class/drm")


@check(
    "GPU.DRM_MASTER",
    "No program is DRM master: it would hold the text console, which then looks frozen.",
    "warning",
    "owen",
    fix="stop or restart the named process; a display manager: sudo systemctl disable --now display-manager",
    on="spark",
)
def drm_master(n: Node) -> Verdict:
    root = "/sys/kernel/debug/dri"
    masters = []
    folders = [name for name in n.names(root) if name.isdigit() and int(name) < 64]
    if not folders:
        raise Unknown(f"{root} has no cards")
    for name in folders:
        lines = n.text(f"{root}/{name}/clients").splitlines()
        if not lines or "master" not in lines[0]:
            raise Unknown(f"{root}/{name}/clients has another form")
        rows = [line.split() for line in lines[1:]]
        # command, pid, device, then y for the master; fbcon is the kernel's own.
        masters += [
            f"{row[0]} ({row[1]})" for row in rows if len(row) > 3 and row[3] == "y" and row[1] != "0"
        ]
    return want(not masters, expected="none", found=", ".join(masters) or "none", where=f"{root}/*/clients")


@check(
    "GPU.FAN",
    "Where the fan control of dgx-spark-fan-control is installed, its cooling device is there.",
    "warning",
    "owen",
    fix="sudo dkms autoinstall && sudo modprobe dgx_ec_fan; with Secure Boot enrol its key (mokutil "
    "--import)",
    on="spark",
)
def fan(n: Node) -> Verdict:
    if not n.exists("/usr/src") or not any("fan-control" in name for name in n.names("/usr/src")):
        raise NotApplicable("it is not installed")
    root = "/sys/class/thermal"
    devices = [name for name in n.names(root) if name.startswith("cooling_device")]
    types = [n.text(f"{root}/{name}/type").strip() for name in devices]
    found = "dgx_ec_fan_floor" in types
    return want(found, expected="dgx_ec_fan_floor", found=" ".join(types) or "none", where=f"{root}/*/type")
