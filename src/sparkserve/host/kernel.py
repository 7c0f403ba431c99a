"""Settings of the running kernel, read from /proc and written there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.host.system import wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.host.system import System


def place(name: str) -> str:
    """The path below /proc/sys of a sysctl. A / in a name stands for a dot: interfaces may have one.

    Raises `NODE.ACTIVATE` for a name that leads elsewhere: what is written there is written by root.
    """
    path = name.translate(str.maketrans("./", "/."))
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise wrong("a sysctl below /proc/sys", name, "host.sysctls", "Correct the option, and build again.")
    return path


def read(system: System, name: str) -> str | None:
    """The value of a sysctl, its numbers one space apart; None when this kernel has none of that name."""
    try:
        return plain(system.at(f"/proc/sys/{place(name)}").read_text())
    except OSError:
        return None


def plain(value: str) -> str:
    """A value as it is compared: the kernel shows tabs where people write spaces."""
    return " ".join(value.split())


def write(system: System, name: str, value: str) -> None:
    """Set a sysctl. Raises `NODE.ACTIVATE` when the kernel refuses the value."""
    path = system.at(f"/proc/sys/{place(name)}")
    try:
        path.write_text(f"{value}\n")
    except OSError as error:
        raise wrong(
            f"the kernel to take {name} = {value}",
            error.strerror or str(error),
            str(path),
            "Change the option that sets it, or use a kernel that has it.",
        ) from None


def release(system: System) -> str:
    """The kernel that runs, as `uname -r` says it."""
    return read(system, "kernel.osrelease") or ""


def driver(system: System) -> str | None:
    """The version of the NVIDIA driver that is loaded, None without one."""
    try:
        text = system.at("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\b[0-9]{3}\.[0-9.]+\b", text)
    return found[0] if found else None


def missing_args(system: System, wanted: Sequence[str]) -> list[str]:
    """Those of the kernel arguments `wanted` that this boot did not get."""
    given = system.at("/proc/cmdline").read_text().split()
    return [each for each in wanted if each not in given]
