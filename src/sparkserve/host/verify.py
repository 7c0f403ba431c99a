"""Is the node as its plan says? Read from /proc, links and systemd, never from what was asked."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.host import effects, kernel
from sparkserve.host.wanted import UNITS, enabled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.host.system import System
    from sparkserve.plan import Host, Plan

_LOOK_S = 0.2
_SHOWN = (
    *("LoadState", "NeedDaemonReload", "ExecStart", "Type", "ActiveState", "Result"),
    *("ConditionResult", "ConditionTimestampMonotonic"),
)


class Difference(NamedTuple):
    """A value of the node that is not the plan's. `reboot`: the next boot is to bring it."""

    what: str
    expected: str
    found: str
    reboot: bool = False

    def __str__(self) -> str:
        return f"{self.what} is {self.found}, not {self.expected}"


def settled(system: System, closure: Path, plan: Plan) -> list[Difference]:
    """What differs once the node had `system.wait_s` seconds to become as planned."""
    deadline = time.monotonic() + system.wait_s
    while True:
        found = list(differences(system, closure, plan))
        if all(each.reboot for each in found) or time.monotonic() > deadline:
            return found
        time.sleep(_LOOK_S)


def differences(system: System, closure: Path, plan: Plan) -> Iterator[Difference]:
    """What differs now. Raises `NODE.ACTIVATE` when systemd does not answer."""
    for _, each in by_part(system, closure, plan):
        yield each


def by_part(system: System, closure: Path, plan: Plan) -> Iterator[tuple[str, Difference]]:
    """The same, each with what it is a part of: sysctls, links, units or kernel."""
    yield from (("sysctls", each) for each in _sysctls(system, plan.host))
    yield from (("links", each) for each in _links(system, plan))
    yield from (("units", each) for each in _units(system, closure, plan.host))
    yield from (("units", each) for each in _masks(system, plan.host))
    yield from (("kernel", each) for each in _kernel(system, plan.host))


def _kernel(system: System, host: Host) -> Iterator[Difference]:
    for each in kernel.missing_args(system, host.kernel_args):
        yield Difference("the kernel's command line", f"with {each}", "without it", reboot=True)
    if host.kernel is None:
        return
    release, page_size = kernel.release(system), os.sysconf("SC_PAGE_SIZE")
    if host.kernel.release not in (None, release):
        yield Difference("the kernel", host.kernel.release or "", release, reboot=True)
    if page_size != host.kernel.page_size:
        yield Difference("the page size", str(host.kernel.page_size), str(page_size), reboot=True)
    driver = kernel.driver(system)
    # A node without a GPU has none; that a Spark has none is for the doctor to say.
    if driver is not None and not f"{driver}.".startswith(f"{host.kernel.driver}."):
        yield Difference("the NVIDIA driver", host.kernel.driver, driver)


def _sysctls(system: System, host: Host) -> Iterator[Difference]:
    for name, value in host.sysctls.items():
        found = kernel.read(system, name)
        if found != kernel.plain(value):
            yield Difference(name, value, "unknown to this kernel" if found is None else found)


def _links(system: System, plan: Plan) -> Iterator[Difference]:
    if plan.fabric is None:
        return
    there = interfaces(system)
    management = plan.fabric.management
    wanted: list[tuple[str, str, int | None]] = [
        (management.interface, f"{management.address}/{management.prefix}", None)
    ]
    wanted += [
        (link.interface, f"{link.address}/{link.prefix}", plan.fabric.mtu) for link in plan.fabric.links
    ]
    for name, address, mtu in wanted:
        found = there.get(name)
        if found is None:
            yield Difference(f"the interface {name}", "there", "missing")
            continue
        if address not in found.addresses:
            yield Difference(f"the address of {name}", address, ", ".join(found.addresses) or "none")
        if mtu is not None and found.mtu != mtu:
            yield Difference(f"the MTU of {name}", str(mtu), str(found.mtu))


class Interface(NamedTuple):
    """An interface as the kernel has it; `addresses` with their prefix."""

    mtu: int | None
    addresses: list[str]


def interfaces(system: System) -> dict[str, Interface]:
    """The node's interfaces. Versions of iproute2 leave out fields: what is not there is not read."""
    found: list[dict[str, Any]] = json.loads(effects.output(system, "ip", "-json", "address", "show") or "[]")
    return {
        each["ifname"]: Interface(
            each.get("mtu"),
            [
                f"{address['local']}/{address['prefixlen']}"
                for address in each.get("addr_info", [])
                if "local" in address and "prefixlen" in address
            ],
        )
        for each in found
        if "ifname" in each
    }


def _units(system: System, closure: Path, host: Host) -> Iterator[Difference]:
    for name, values in effects.show(system, list(host.units), *_SHOWN).items():
        text = (closure / "units" / name).read_text()
        if values.get("LoadState") != "loaded":
            yield Difference(name, "loaded", values.get("LoadState", "unknown to systemd"))
        elif values.get("NeedDaemonReload") == "yes" or not _ours(closure, text, values.get("ExecStart", "")):
            yield Difference(name, f"the one of {closure}", "another one in systemd")
        elif name not in effects.GROUP:
            yield from _runs(name, text, values)


def _ours(closure: Path, text: str, command: str) -> bool:
    """Whether systemd has this closure's text: all files of a store have the same time, so it cannot tell."""
    starts = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    return f"{closure}/" in command or not any(f"{closure}/" in line for line in starts)


def _runs(name: str, text: str, values: dict[str, str]) -> Iterator[Difference]:
    state = values.get("ActiveState", "unknown")
    if state == "failed":
        yield Difference(name, "without failure", f"failed ({values.get('Result', 'no reason')})")
    elif state != "active" and values.get("Type") != "oneshot" and _at_boot(text) and not _spared(values):
        yield Difference(name, "active", state)


def _spared(values: dict[str, str]) -> bool:
    """Whether systemd did not start a unit because its own conditions say so."""
    return values.get("ConditionResult") == "no" and values.get("ConditionTimestampMonotonic") != "0"


def _at_boot(text: str) -> bool:
    return any(folder.endswith((".target.wants", ".target.requires")) for folder in enabled(text))


def _masks(system: System, host: Host) -> Iterator[Difference]:
    for name, values in effects.show(system, list(host.mask), "LoadState", "ActiveState").items():
        if values.get("LoadState") != "masked":
            yield Difference(name, "masked", values.get("LoadState", "unknown to systemd"))
        elif values.get("ActiveState") not in ("inactive", "failed"):
            yield Difference(name, "stopped", values.get("ActiveState", "unknown"))
    if host.default_target is not None:
        target = system.at(f"{UNITS}/default.target")
        found = target.readlink().name if target.is_symlink() else "the distribution's"
        if found != host.default_target:
            yield Difference("the default target", host.default_target, found)
